// Accessible names for controls whose labels the widgets do not connect, downloads, and the address.

function nameOf(control) {
  const widget = control.closest(".jupyter-widgets.widget-inline-hbox, .jupyter-widgets.widget-textarea");
  const label = widget && widget.querySelector(".widget-label");
  return ((label && (label.textContent || label.title)) || control.title).replace(/\s+/g, " ").trim();
}

function nameControls() {
  const controls = document.querySelectorAll(
    ".tplr-page .noUi-handle, .tplr-page input, .tplr-page select, .tplr-page textarea",
  );
  for (const control of controls) {
    const labelled = control.labels && control.labels.length && control.labels[0].textContent.trim();
    if (control.getAttribute("aria-label") || labelled) continue;
    const name = nameOf(control);
    if (name) control.setAttribute("aria-label", name);
  }
  for (const group of document.querySelectorAll(".tplr-page .widget-toggle-buttons")) {
    const label = group.querySelector(".widget-label");
    if (label) {
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", label.textContent);
    }
    for (const button of group.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.classList.contains("mod-active")));
    }
  }
}

function render({ model, el }) {
  let waiting = 0;
  const soon = () => {
    if (waiting) return;
    waiting = setTimeout(() => {
      waiting = 0;
      nameControls();
    }, 100);
  };
  const observer = new MutationObserver(soon);
  observer.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["class"] });
  const download = (message, buffers) => {
    const blob = new Blob(buffers, { type: message.type });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = message.name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };
  const address = () => {
    if (!("voila" in document.body.dataset)) return; // the address belongs to JupyterLab
    const theme = new URLSearchParams(location.search).get("theme");
    const query = [model.get("query"), theme && `theme=${encodeURIComponent(theme)}`].filter(Boolean).join("&");
    history.replaceState(null, "", location.pathname + (query && `?${query}`));
  };
  model.on("change:query", address);
  model.on("msg:custom", download);
  soon();
  el.style.display = "none";
  return () => {
    observer.disconnect();
    clearTimeout(waiting);
    model.off("change:query", address);
    model.off("msg:custom", download);
  };
}

export default { render };
