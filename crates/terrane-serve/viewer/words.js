// Numbers and names as people read them.

export const TITLES = {
  relief: "Relief",
  hillshade: "Hillshade",
  slope: "Slope",
  aspect: "Aspect",
  laplacian: "Laplacian",
  "profile-curvature": "Profile curvature",
  "plan-curvature": "Plan curvature",
  difference: "Difference",
  change: "Proven change",
};

/** A number with its digits behind the point: no zero is negative, and a minus is one. */
export const fixed = (value, digits) => value.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−");

export const metres = (value, digits = 2) =>
  value === null || value === undefined ? "–" : `${fixed(value, digits)} m`;

/** Digits of metres that a file's error leaves; a lossless one has millimetres. */
export const digitsOf = ({ lossless, bound_m, max_error_m }) => {
  const error = lossless ? 0.001 : bound_m || max_error_m || 0.001;
  return Math.min(3, Math.max(0, Math.ceil(-Math.log10(error) - 1e-9)));
};

export const degrees = (value, digits = 1) =>
  value === null || value === undefined ? "–" : `${fixed(value, digits)}°`;

export const perMetre = (value) => {
  if (value === null || value === undefined) return "–";
  const text = Math.abs(value) < 1e-4 && value !== 0 ? value.toExponential(1) : value.toFixed(4);
  // The exponent has a minus too.
  return `${text} /m`.replaceAll("-", "−");
};

export const distance = (value) =>
  value < 1000 ? `${value.toFixed(value < 100 ? 1 : 0)} m` : `${(value / 1000).toFixed(2)} km`;

export const bytes = (count) => {
  if (count < 10_000) return `${count} B`;
  if (count < 10_000_000) return `${(count / 1e3).toFixed(count < 100_000 ? 1 : 0)} kB`;
  return `${(count / 1e6).toFixed(1)} MB`;
};

export const bearing = (value) =>
  ["N", "NE", "E", "SE", "S", "SW", "W", "NW"][Math.round(value / 45) % 8];

/** A limit or a tick, with as many digits as it needs. */
export const brief = (value) => {
  const size = Math.abs(value);
  const text = size === 0 ? "0" : size >= 100 ? value.toFixed(0) : size >= 0.001 ? String(+value.toPrecision(2)) : value.toExponential(0);
  return text.replaceAll("-", "−");
};

/** An element with properties and children; text is never read as HTML. */
export const element = (tag, properties = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in node && key !== "list") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
};

export const fetchJson = async (address, signal) => {
  const answer = await fetch(address, { signal });
  // Of a host that is no server of ours, an error is a page.
  const value = await answer.json().catch(() => null);
  if (!answer.ok || value === null) throw new Error(value?.error ?? `${address} cannot be read: the server answers ${answer.status}`);
  return value;
};
