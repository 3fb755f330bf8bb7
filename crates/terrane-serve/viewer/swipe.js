// The border between the two maps, moved by pointer or by keys.

export class Swipe {
  constructor(handle, upper, stage) {
    this.handle = handle;
    this.upper = upper;
    this.stage = stage;
    this.after = handle.querySelector(".after");
    this.part = 0.5;
    handle.addEventListener("pointerdown", (event) => {
      handle.setPointerCapture(event.pointerId);
      event.preventDefault();
      handle.focus({ focusVisible: false });
    });
    handle.addEventListener("pointermove", (event) => {
      if (handle.hasPointerCapture(event.pointerId)) {
        const box = stage.getBoundingClientRect();
        this.move((event.clientX - box.left) / box.width);
      }
    });
    handle.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -0.02, ArrowDown: -0.02, ArrowRight: 0.02, ArrowUp: 0.02, PageDown: -0.1, PageUp: 0.1 }[event.key];
      if (step) this.move(this.part + step);
      else if (event.key === "Home") this.move(0);
      else if (event.key === "End") this.move(1);
      else return;
      event.preventDefault();
    });
  }

  set(isOn) {
    this.isOn = isOn;
    this.handle.hidden = !isOn;
    this.move(this.part);
  }

  /** Says what is drawn on the right. */
  name(title) {
    this.after.textContent = title;
    this.handle.ariaLabel = `Border between the original, left, and ${title}, right`;
  }

  move(part) {
    this.part = Math.min(1, Math.max(0, part));
    const share = `${(this.part * 100).toFixed(2)}%`;
    this.handle.style.left = share;
    this.handle.setAttribute("aria-valuenow", Math.round(this.part * 100));
    this.handle.setAttribute("aria-valuetext", `${Math.round(this.part * 100)} % original`);
    this.upper.style.clipPath = this.isOn ? `inset(0 0 0 ${share})` : "";
  }
}
