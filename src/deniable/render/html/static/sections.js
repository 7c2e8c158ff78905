// The collector renders results as HTML and escapes every decoded string. As a second defence, only
// the elements and attributes of such a section are copied into the page.
const HTML = "http://www.w3.org/1999/xhtml", SVG = "http://www.w3.org/2000/svg";
const ELEMENTS = {
  [HTML]: "section h2 h3 p ul li b div table thead tbody tr th td button details summary dl dt dd",
  [SVG]: "svg g title text line circle rect polygon polyline path",
};
const ATTRIBUTES = new Set(("aria-label class cx cy d data-key height points r role rx scope tabindex "
  + "text-anchor transform viewBox width x x1 x2 y y1 y2").split(" "));
const allowed = new Map(Object.entries(ELEMENTS).map(([space, names]) => [space, new Set(names.split(" "))]));

function copy(node) {
  if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
  if (!allowed.get(node.namespaceURI)?.has(node.localName)) return null;
  const made = document.createElementNS(node.namespaceURI, node.localName);
  for (const { name, value } of node.attributes) if (ATTRIBUTES.has(name)) made.setAttribute(name, value);
  if (node.localName === "button") made.type = "button";
  made.append(...copies(node));
  return made;
}

const copies = (node) => [...node.childNodes].map(copy).filter((made) => made !== null);

/** Return the nodes of a section. Parsing runs no script and loads nothing. */
export const nodes = (text) => copies(new DOMParser().parseFromString(text, "text/html").body);
