"use strict";
// The page of a query is whole without this file: j and k follow its links to the next and the previous query.
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, select, textarea, [contenteditable]")) return;
  const way = { j: "next", k: "prev" }[event.key];
  const link = way && document.querySelector(`a[rel=${way}]`);
  if (link) link.click();
});
