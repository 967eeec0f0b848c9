// Cells of pages' tables learn the heads of their columns, which a narrow screen shows beside them.
// A table of numbers stays a table, which scrolls.
const LONGEST_NUMBER = 24;
const isOfNumbers = (table) =>
  [...table.querySelectorAll("tbody td:not(:first-child)")].every(
    (cell) => cell.textContent.trim().length <= LONGEST_NUMBER,
  );
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.docutils")) {
    const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    if (heads.length < 2 || isOfNumbers(table)) continue;
    table.classList.add("stacked");
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, column) => (cell.dataset.head = heads[column]));
    }
  }
});
