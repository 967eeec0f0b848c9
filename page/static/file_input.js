// Reads one file and sends it with its name; of a file that is too large, only name and size are sent.
let number = 0;

function render({ model, el }) {
  const id = `tplr-file-${(number += 1)}-${Math.random().toString(36).slice(2)}`;
  const label = document.createElement("label");
  label.className = "tplr-file-label";
  label.htmlFor = id;
  label.textContent = model.get("label");
  const input = document.createElement("input");
  input.type = "file";
  input.id = id;
  input.addEventListener("click", () => {
    input.value = ""; // so that choosing the same file again counts as a choice
  });
  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (!file) return;
    const small = file.size <= model.get("limit");
    const content = small ? await file.arrayBuffer() : new ArrayBuffer(0);
    model.set("name", file.name);
    model.set("size", file.size);
    model.set("content", new DataView(content));
    model.set("value", model.get("value") + 1);
    model.save_changes();
  });
  // The choice outlives the input, which is recreated whenever its form is shown.
  const used = document.createElement("span");
  used.className = "tplr-note";
  const show = () => (used.textContent = model.get("name") && !input.files.length ? `using ${model.get("name")}` : "");
  model.on("change:value", show);
  show();
  el.classList.add("tplr-file");
  el.append(label, input, used);
  return () => model.off("change:value", show);
}

export default { render };
