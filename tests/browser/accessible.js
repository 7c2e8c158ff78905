// What a person needs of a page, as lists of what is wrong: labels, contrast, width, size of text in charts.
() => {
  const shown = (node) => node.checkVisibility?.() ?? true;
  const name = (node) => `${node.localName}#${node.id}.${node.getAttribute("class")} ${node.textContent.trim().slice(0, 30)}`;
  const unnamed = [...document.querySelectorAll("input, select, textarea, button, progress, svg[role=img]")].filter((node) =>
    shown(node) && !node.labels?.length && !node.getAttribute("aria-label") && !node.textContent.trim());
  const numbers = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const bright = (colour) => numbers(colour).slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor, [, , , opacity = 1] = numbers(colour);
      if (opacity > 0) return colour;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  const ratio = (node) => {
    const style = getComputedStyle(node), ink = node instanceof SVGElement ? style.fill : style.color;
    const [low, high] = [bright(ink), bright(behind(node))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const says = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  const faint = [...document.body.querySelectorAll("*")].filter((node) =>
    says(node) && shown(node) && !node.disabled && !["title", "option", "noscript"].includes(node.localName)
    && !/^on/.test(node.getAttribute("class") ?? "") && ratio(node) < 4.5);
  const wide = document.documentElement.scrollWidth > innerWidth ? [`${document.documentElement.scrollWidth} > ${innerWidth}`] : [];
  const pixels = (node) => parseFloat(getComputedStyle(node).fontSize) * Math.hypot(node.getScreenCTM().a, node.getScreenCTM().b);
  const small = [...document.querySelectorAll("svg text")].filter((node) => shown(node) && pixels(node) < 11);
  return { unnamed: unnamed.map(name), faint: faint.map((node) => `${name(node)} ${ratio(node).toFixed(2)}`), wide,
    small: small.map((node) => `${name(node)} ${pixels(node).toFixed(1)}`) };
}
