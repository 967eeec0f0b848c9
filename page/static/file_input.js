// Reads one file; the content of one that is too large would break the connection, and is not sent.
function render({ model, el }) {
  const input = document.createElement("input");
  input.type = "file";
  const button = document.createElement("button");
  button.className = "jupyter-button widget-upload";
  button.title = `a file with ${model.get("wanted")}`;
  const show = () => {
    const { name } = model.get("value");
    button.textContent = name ? `${name}; choose another` : "Choose a file";
  };
  button.onclick = () => {
    input.value = ""; // so that choosing the same file again counts as a choice
    input.click();
  };
  input.onchange = async () => {
    const [file] = input.files;
    if (!file) return;
    const part = file.size > model.get("limit") ? new Blob() : file;
    model.set("value", { name: file.name, size: file.size, content: new DataView(await part.arrayBuffer()) });
    model.save_changes();
  };
  model.on("change:value", show);
  show();
  el.append(button);
  return () => model.off("change:value", show);
}

export default { render };
