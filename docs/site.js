// For the keyboard and screen readers: what scrolls can have the focus, the buttons at code are no landmarks, and the
// path of a page has another name than the navigation.
const improve = () => {
  for (const one of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap")) one.tabIndex = 0;
  for (const one of document.querySelectorAll(".md-code__nav")) one.setAttribute("role", "none");
  for (const one of document.querySelectorAll(".md-path")) one.setAttribute("aria-label", "Path");
};
new MutationObserver(improve).observe(document.body, { childList: true, subtree: true });
improve();
