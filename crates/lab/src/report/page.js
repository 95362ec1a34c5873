// Saves figures and switches the theme; without it the page is whole.
'use strict';
const root = document.documentElement;
const theme = document.getElementById('theme');
theme.hidden = false;
theme.addEventListener('click', () => {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
});
// The drawing with the colours it has now, able to stand alone.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const box = svg.viewBox.baseVal;
  copy.setAttribute('xmlns', svg.namespaceURI);
  copy.removeAttribute('style');
  copy.setAttribute('width', box.width);
  copy.setAttribute('height', box.height);
  const from = [svg, ...svg.querySelectorAll('*')];
  [copy, ...copy.querySelectorAll('*')].forEach((element, i) => {
    const style = getComputedStyle(from[i]);
    for (const name of ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'stroke-linejoin', 'opacity', 'font-family', 'font-size'])
      element.style.setProperty(name, style.getPropertyValue(name));
  });
  return new XMLSerializer().serializeToString(copy);
}
// Boxes that are wider inside say that they can be moved.
function hint() {
  for (const box of document.querySelectorAll('.scroll'))
    box.parentElement.classList.toggle('wider', box.scrollWidth > box.clientWidth + 1);
}
hint();
addEventListener('resize', hint);
document.addEventListener('toggle', hint, true);
// Paper has no folds.
addEventListener('beforeprint', () => document.querySelectorAll('.more').forEach((more) => { more.open = true; }));
function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
for (const tools of document.querySelectorAll('.save')) {
  tools.hidden = false;
  const figure = tools.closest('figure');
  tools.addEventListener('click', (event) => {
    const kind = event.target.dataset.save;
    if (!kind) return;
    // The first is drawn for the widest room.
    const svg = figure.querySelector('svg');
    const text = standalone(svg);
    const blob = new Blob([text], { type: 'image/svg+xml' });
    if (kind === 'svg') return save(blob, figure.dataset.name + '.svg');
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement('canvas');
      canvas.width = svg.viewBox.baseVal.width * 2;
      canvas.height = svg.viewBox.baseVal.height * 2;
      canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((png) => save(png, figure.dataset.name + '.png'), 'image/png');
    };
    image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
  });
}
