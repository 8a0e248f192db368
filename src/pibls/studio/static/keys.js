// Keys for the whole page, and the problem in the address.
{
  const said = (name, detail) => window.emitEvent?.(name, detail);
  const typing = (node) => ["INPUT", "TEXTAREA"].includes(node?.tagName);
  document.addEventListener("keydown", (event) => {
    const command = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    let name = "";
    if (command && key === "enter") name = "solve";
    else if (command && key === "s") name = "save";
    else if (command && key === "o") name = "open";
    else if (command && key === "z" && !typing(event.target)) name = event.shiftKey ? "redo" : "undo";
    else if (command && key === "y" && !typing(event.target)) name = "redo";
    else if (event.key === "Escape") name = "cancel";
    else if (event.key === "?" && !typing(event.target)) name = "help";
    if (!name) return;
    if (name !== "cancel") event.preventDefault();
    said("studio_key", name);
  }, true);
  // A file that is dropped anywhere goes the way of one that is opened.
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    const upload = window.getElement?.(document.querySelector(".q-uploader")?.id.slice(1));
    if (event.dataTransfer?.files.length) upload?.$refs.qRef.addFiles(event.dataTransfer.files);
  });
  window.studioShare = (fragment) => history.replaceState(null, "", `#${fragment}`);
  window.addEventListener("hashchange", () => said("studio_fragment", location.hash.slice(1)));
}
