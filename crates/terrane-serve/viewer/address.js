// What the page's address says of the map besides its view, which MapLibre keeps there: the file, the layer, and what is switched on.

const VIEW = "view";

const parts = () => location.hash.slice(1).split("&").filter(Boolean);

/** What the address says, by name. */
export const readAddress = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

/** Writes values by name; one that is `null` is left out. The view stays as it is. */
export const writeAddress = (values) => {
  const own = Object.entries(values).filter(([, value]) => value !== null).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  const view = parts().filter((part) => part.startsWith(`${VIEW}=`));
  const text = [...own, ...view].join("&");
  history.replaceState(history.state, "", text ? `#${text}` : location.pathname + location.search);
};

export { VIEW };
