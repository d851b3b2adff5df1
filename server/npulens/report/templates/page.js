"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const texts = data.texts;
  const PORTION = 100;
  const MOST_AT_ONCE = 5000;

  const say = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const number = (value) => value.toLocaleString("en-US");

  function element(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  // What stands between backticks is code.
  function withCode(text) {
    const parts = text.split("`");
    if (parts.length % 2 === 0) return [text];
    return parts.map((part, index) => (index % 2 ? element("code", "", part) : part));
  }

  function link(href, className, ...children) {
    const made = element("a", className, ...children);
    made.href = href;
    return made;
  }

  // Long paths break behind a slash first.
  const breakable = (path) => path.split(/(?<=\/)/).flatMap((part) => [part, element("wbr")]);

  function button(text, action) {
    const made = element("button", "", text);
    made.type = "button";
    made.addEventListener("click", action);
    return made;
  }

  // Light and dark: the system's choice until somebody clicks; an editor's where it shows the page.

  const root = document.documentElement;
  const remembered = {
    read() {
      try { return localStorage.getItem("npulens-theme"); } catch { return null; }
    },
    write(theme) {
      try { localStorage.setItem("npulens-theme", theme); } catch { /* a page without storage */ }
    },
  };

  function isDark() {
    if (root.dataset.theme) return root.dataset.theme === "dark";
    const classes = document.body.classList;
    if (classes.contains("vscode-dark") || classes.contains("vscode-high-contrast")) return true;
    if (classes.contains("vscode-light")) return false;
    return matchMedia("(prefers-color-scheme: dark)").matches;
  }

  if (remembered.read()) root.dataset.theme = remembered.read();
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remembered.write(root.dataset.theme);
  });

  // What stands in the page: sorting tables, and hiding what is long.

  function headings(table, onSort) {
    for (const heading of table.tHead.rows[0].cells) {
      if (!heading.textContent.trim()) continue;
      heading.tabIndex = 0;
      const sort = () => {
        const descending = heading.ariaSort
          ? heading.ariaSort === "ascending"
          : heading.classList.contains("figure");
        for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
        heading.ariaSort = descending ? "descending" : "ascending";
        onSort(heading, descending ? -1 : 1);
      };
      heading.addEventListener("click", sort);
      heading.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          sort();
        }
      });
    }
  }

  const compare = (left, right) =>
    typeof left === "number" && typeof right === "number"
      ? left - right
      : String(left).localeCompare(String(right), "en", { numeric: true });

  function limit(container, items) {
    const most = Number(container.dataset.limit);
    if (container.dataset.all || !most || items.length <= most + 1) return;
    items.forEach((item, index) => { item.hidden = index >= most; });
    if (container.nextElementSibling?.classList.contains("show-all")) return;
    const more = button(say(texts.all, { number: number(items.length) }), () => {
      container.dataset.all = "1";
      for (const item of items) item.hidden = false;
      more.remove();
    });
    more.classList.add("show-all");
    container.after(more);
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const value = (row, column) => {
      const cell = row.cells[column];
      return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
    };
    headings(table, (heading, sign) => {
      const column = heading.cellIndex;
      const rows = [...body.rows];
      rows.sort((left, right) => sign * compare(value(left, column), value(right, column)));
      body.append(...rows);
      limit(table, rows);
    });
    limit(table, [...body.rows]);
  }
  for (const list of document.querySelectorAll(".limited")) limit(list, [...list.children]);

  // The two long lists, of which only some rows are made.

  class List {
    constructor(name, table, items, rowOf, matches, keys) {
      Object.assign(this, { table, items, rowOf, matches, keys });
      this.form = document.querySelector(`form[data-list="${name}"]`);
      this.output = this.form.querySelector("output");
      this.body = table.tBodies[0];
      this.order = null;
      this.buttons = element("p", "more");
      table.after(this.buttons);
      this.form.addEventListener("submit", (event) => event.preventDefault());
      this.form.addEventListener("input", () => this.show());
      this.form.addEventListener("reset", () => setTimeout(() => {
        for (const hidden of this.form.querySelectorAll("input[type=hidden]")) hidden.value = "";
        this.show();
      }));
      headings(table, (heading, sign) => {
        this.order = { key: keys[heading.dataset.key], sign };
        this.show();
      });
      this.show();
    }

    set(values) {
      this.form.reset();
      setTimeout(() => {
        for (const [name, value] of Object.entries(values)) this.form.elements[name].value = value;
        this.show();
        this.table.closest("section").scrollIntoView();
      });
    }

    show() {
      const wanted = Object.fromEntries(new FormData(this.form));
      const words = (wanted.text || "").toLowerCase().split(/\s+/).filter(Boolean);
      this.found = this.items.filter((item) => this.matches(item, wanted, words));
      if (this.order) {
        const { key, sign } = this.order;
        this.found.sort((left, right) => sign * compare(key(left), key(right)));
      }
      const chip = this.form.querySelector(".chip");
      if (chip) {
        chip.hidden = !wanted.folder;
        chip.textContent = `${texts.in_folder}: ${wanted.folder}/`;
      }
      this.body.replaceChildren();
      this.made = 0;
      this.add(PORTION);
    }

    add(portion) {
      const next = this.found.slice(this.made, this.made + portion);
      this.body.append(...next.map((item) => this.rowOf(item)));
      this.made += next.length;
      const left = this.found.length - this.made;
      this.output.value = say(texts.shown, {
        shown: number(this.made), total: number(this.found.length),
      });
      this.buttons.replaceChildren();
      if (!this.found.length) this.buttons.append(texts.none);
      if (left > 0) {
        const step = Math.min(left, PORTION);
        this.buttons.append(button(say(texts.more, { number: step }), () => this.add(step)));
      }
      if (left > PORTION) {
        const all = Math.min(left, MOST_AT_ONCE);
        const text = all === left
          ? say(texts.all, { number: number(this.found.length) })
          : say(texts.more, { number: number(all) });
        this.buttons.append(button(text, () => this.add(all)));
      }
    }
  }

  const cell = (className, ...children) => element("td", className, ...children);
  const minutes = (value) => (value ? data.durations[value] : "–");
  const holds = (text, words) => words.every((word) => text.includes(word));

  const files = data.files.map(([name, href, state, findings, work, advice]) => ({
    name, href, state, findings, work, advice, lower: name.toLowerCase(),
  }));
  // What needs most comes first, until somebody sorts.
  const urgency = ["blocked", "unknown", "review", "safe", "as-is", "other"];
  const rank = (file) => urgency.indexOf(data.states[file.state][0]);
  const byUrgency = [...files].sort((left, right) =>
    rank(left) - rank(right) || right.work - left.work || right.findings - left.findings);
  const fileList = new List(
    "files",
    document.getElementById("file-list"),
    byUrgency,
    (file) => {
      const [key, label] = data.states[file.state];
      return element(
        "tr", "",
        cell("code", link(file.href, "path", ...breakable(file.name))),
        cell("", element("span", `badge ${key}`, label)),
        cell("figure", number(file.findings)),
        cell("figure", minutes(file.work)),
        cell("figure", minutes(file.advice)),
      );
    },
    (file, wanted, words) =>
      (!wanted.state || data.states[file.state][0] === wanted.state) && holds(file.lower, words),
    {
      name: (file) => file.lower,
      state: rank,
      findings: (file) => file.findings,
      work: (file) => file.work,
      advice: (file) => file.advice,
    },
  );

  const rules = data.rules.map(([code, name, family]) => ({ code, name, family }));
  const findings = data.findings.map(
    ([file, rule, severity, fix, work, line, place, effort, message, before, marked, after]) => ({
      file: files[file], rule: rules[rule], severity, fix, work, line, place, effort,
      message: data.messages[message], before, marked, after,
    }),
  );
  for (const each of findings) {
    each.lower = [each.file.name, each.rule.code, each.rule.name, each.message, each.marked]
      .join(" ").toLowerCase();
  }
  findings.sort((left, right) =>
    right.work - left.work || left.severity - right.severity || right.effort - left.effort);
  const findingList = new List(
    "findings",
    document.getElementById("finding-list"),
    findings,
    (each) => {
      const [key, label] = data.severities[each.severity];
      const [fixKey, fixLabel] = data.fixes[each.fix];
      const { code, name } = each.rule;
      const rule = element("span", "rule", code);
      rule.title = name;
      const href = `${each.file.href}${data.lineMark}${each.line}`;
      const place = breakable(`${each.file.name}:${each.place}`);
      const shown = element("code", "source", each.before);
      if (each.marked) shown.append(element("mark", "", each.marked));
      shown.append(each.after);
      return element(
        "tr", "",
        cell("", element("span", `badge ${key}`, label)),
        cell("code", link(href, "path", ...place), shown),
        cell("text", rule, " ", ...withCode(each.message)),
        cell("", element("span", `fix ${fixKey}`, fixLabel)),
        cell("figure", minutes(each.effort)),
      );
    },
    (each, wanted, words) =>
      (!wanted.work || String(each.work) === wanted.work)
      && (!wanted.family || each.rule.family === wanted.family)
      && (!wanted.severity || data.severities[each.severity][0] === wanted.severity)
      && (!wanted.fix || data.fixes[each.fix][0] === wanted.fix)
      && (!wanted.folder || each.file.name.startsWith(`${wanted.folder}/`))
      && holds(each.lower, words),
    {
      severity: (each) => each.severity,
      place: (each) => `${each.file.lower}:${each.line}`,
      rule: (each) => each.rule.code,
      fix: (each) => each.fix,
      minutes: (each) => each.effort,
    },
  );

  // Figures lead to the lists.

  for (const each of document.querySelectorAll("button[data-state]")) {
    each.addEventListener("click", () => fileList.set({ state: each.dataset.state }));
  }
  for (const each of document.querySelectorAll("button[data-family]")) {
    each.addEventListener("click", () => findingList.set({ family: each.dataset.family }));
  }
  for (const each of document.querySelectorAll("button[data-folder]")) {
    each.addEventListener("click", (event) => {
      event.preventDefault(); // the row is not opened
      findingList.set({ folder: each.dataset.folder });
    });
  }
})();
