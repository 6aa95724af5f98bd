// The theme leaves its search dialogue and the bars of its copy buttons without names, and its wide tables out of the
// reach of the keyboard; readers who use a screen reader or no mouse need them.
function label() {
  document.querySelectorAll(".md-search[role=dialog]").forEach((one) => one.setAttribute("aria-label", "Search"));
  document.querySelectorAll("nav.md-code__nav").forEach((one) => one.setAttribute("role", "none"));
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((one) => one.setAttribute("tabindex", "0"));
}
label();
new MutationObserver(label).observe(document.body, { childList: true, subtree: true });
