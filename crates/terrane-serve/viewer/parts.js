// Where the bytes of a file are: a bar, and what its colours mean.

import { bytes, element } from "./words.js";

/** All of a file is read for its parts: of larger ones only when somebody asks. */
const AT_ONCE = 100e6;

const KINDS = [
  ["details", "Details", (parts) => parts.details],
  ["details", "Integers", (parts) => parts.integers],
  ["details", "Tokens", (parts) => parts.tokens],
  ["roots", "Roots", (parts) => parts.roots],
  ["residuals", "Residuals", (parts) => parts.residuals],
  ["masks", "Masks and flat areas", (parts) => parts.masks + parts.flats],
  ["model", "Model", (parts) => parts.model],
  ["frame", "Head, index, framing", (parts) => parts.head + parts.index + parts.framing],
  ["damaged", "Damaged", (parts) => parts.damaged],
];

export const percent = (share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;

export class PartsBar {
  /** `onParts` is told what is known of a file's parts. */
  constructor(box, source, onParts) {
    this.box = box;
    this.source = source;
    this.onParts = onParts;
    this.bar = element("div", { className: "bar" });
    this.list = element("ul");
    this.summary = element("summary", { title: "Where the bytes of the file are" }, this.bar);
    box.replaceChildren(this.summary, this.list);
    box.ontoggle = () => { if (box.open) this.load(); };
  }

  /** Shows the parts of a file; the original has none. */
  show(info, isOpen) {
    this.name = info.name;
    this.isAsked = false;
    this.fill([], "Where the bytes of the file are");
    this.box.hidden = info.is_original;
    if (info.is_original) return;
    const isSmall = info.bytes <= AT_ONCE;
    this.box.open = isSmall && isOpen;
    if (isSmall) this.load();
  }

  async load() {
    if (this.isAsked) return;
    this.isAsked = true;
    const name = this.name;
    try {
      const parts = await this.source().parts(name);
      if (name !== this.name) return;
      // Nobody read all of a file at another address for its parts.
      if (parts) {
        this.draw(parts);
        this.onParts(parts);
      } else this.box.hidden = true;
    } catch (error) {
      if (name === this.name) this.list.replaceChildren(element("li", {}, error.message));
      // A server that was busy may have time later.
      this.isAsked = false;
    }
  }

  draw(parts) {
    const shown = KINDS.map(([kind, title, count]) => ({ kind, title, count: count(parts) })).filter(({ count }) => count > 0);
    const text = (part) => `${part.title} ${percent(part.count / parts.bytes)}`;
    this.fill(shown, `Bytes of the file: ${shown.map(text).join(", ")}`);
    this.list.replaceChildren(...shown.map((part) =>
      element("li", { title: bytes(part.count) }, element("i", { className: part.kind }), text(part))));
  }

  fill(shown, label) {
    this.summary.ariaLabel = label;
    this.list.replaceChildren();
    this.bar.replaceChildren(...shown.map(({ kind, title, count }) => {
      const part = element("i", { className: kind, title: `${title}: ${bytes(count)}` });
      part.style.flexGrow = count;
      return part;
    }));
  }
}
