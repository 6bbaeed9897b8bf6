// The copy button of a console block copies the commands, without the prompt and without what they print.
function commandsOf(code) {
  const commands = [];
  let continues = false;
  for (const line of code.textContent.split("\n")) {
    if (continues || line.startsWith("$ ")) {
      commands.push(continues ? line : line.slice(2));
      continues = line.endsWith("\\");
    }
  }
  return commands.join("\n");
}

for (const event of ["pointerover", "focusin", "click"]) {
  document.addEventListener(
    event,
    ({ target }) => {
      const button = target.closest?.(".md-code__button");
      const code = button?.closest("pre")?.querySelector("code");
      if (code?.querySelector(".gp")) {
        button.setAttribute("data-clipboard-text", commandsOf(code));
      }
    },
    true,
  );
}

// A table that is wider than the page scrolls, also by keyboard.
function focusWideTables() {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (table.scrollWidth > table.clientWidth) {
      table.tabIndex = 0;
      table.setAttribute("role", "region");
      table.setAttribute("aria-label", "Table");
    } else {
      table.removeAttribute("tabindex");
    }
  }
}

// The theme puts the tables into their boxes after this script has run.
new MutationObserver(focusWideTables).observe(document.body, { childList: true, subtree: true });
new ResizeObserver(focusWideTables).observe(document.body);
