// Looks at pages in frames of several widths. Each defect becomes a line of the element `found`.
'use strict';
const found = [];
let figures = 0;
const shown = (element) => element.checkVisibility();
const name = (element) => {
  const text = element.textContent.trim().replace(/\s+/g, ' ').slice(0, 60);
  return `<${element.tagName.toLowerCase()} class="${element.getAttribute('class') ?? ''}"> "${text}"`;
};
const box = (element) => element.getBoundingClientRect();
// How far two boxes lie in each other, the smaller of both ways.
const common = (a, b) => Math.min(
  Math.min(a.right, b.right) - Math.max(a.left, b.left),
  Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));

// The nearest element around it that can be moved sideways.
function scroller(element, view) {
  for (let at = element.parentElement; at && at !== element.ownerDocument.body; at = at.parentElement)
    if (['auto', 'scroll'].includes(view.getComputedStyle(at).overflowX)) return at;
  return null;
}

function sideways(view, say) {
  const page = view.document;
  if (page.documentElement.scrollWidth > view.innerWidth)
    say(`the page is ${page.documentElement.scrollWidth} wide`);
  for (const element of page.body.querySelectorAll('*')) {
    if (!shown(element) || element.closest('svg') !== null && element.tagName !== 'svg') continue;
    const style = view.getComputedStyle(element);
    if (['hidden', 'clip'].includes(style.overflowX) && element.scrollWidth > element.clientWidth + 1)
      say(`${name(element)} is cut`);
    const around = scroller(element, view);
    const rect = box(element);
    if (rect.width === 0) continue;
    if (around === null && (rect.left < -0.5 || rect.right > view.innerWidth + 0.5))
      say(`${name(element)} ends at ${rect.right.toFixed(0)}`);
    if (element.matches('td.words') && rect.width < 90 && around !== null)
      say(`${name(element)} is squeezed to ${rect.width.toFixed(0)}`);
    // Words are never out of sight; numbers may be, beside a column that stays.
    if (around !== null && element.matches('td:not(.number), th:not(.number)') && rect.right > box(around).right + 0.5)
      say(`${name(element)} is out of sight in its box`);
  }
  for (const table of page.querySelectorAll('table')) {
    const [head, ...rows] = table.rows;
    const odd = rows.find((row) => row.cells.length !== head.cells.length);
    if (odd) say(`${name(odd)} has ${odd.cells.length} cells for ${head.cells.length} columns`);
  }
  for (const moved of page.querySelectorAll('.scroll')) {
    if (!shown(moved) || moved.scrollWidth <= moved.clientWidth + 1) continue;
    const hint = moved.parentElement.querySelector('.hint');
    if (!hint || !shown(hint) || hint.textContent.trim() === '') say(`${name(moved)} moves sideways without a hint`);
    if (moved.tabIndex !== 0) say(`${name(moved)} cannot be moved by keys`);
  }
}

function drawings(view, say) {
  for (const svg of view.document.querySelectorAll('svg')) {
    if (!shown(svg)) continue;
    figures += 1;
    const around = box(svg);
    const scale = around.width / svg.viewBox.baseVal.width;
    const texts = [...svg.querySelectorAll('text')];
    const boxes = texts.map(box);
    texts.forEach((text, i) => {
      const rect = boxes[i];
      if (rect.left < around.left - 1 || rect.right > around.right + 1 || rect.top < around.top - 1 || rect.bottom > around.bottom + 1)
        say(`${name(text)} reaches out of its drawing`);
      const size = parseFloat(view.getComputedStyle(text).fontSize) * scale;
      if (size < 9.5) say(`${name(text)} is ${size.toFixed(1)} px high`);
      for (let j = 0; j < i; j++)
        if (common(rect, boxes[j]) > 1.5) say(`${name(text)} covers ${name(texts[j])}`);
    });
    for (const whisker of svg.querySelectorAll('.whisker'))
      texts.forEach((text, i) => {
        if (common(boxes[i], box(whisker)) > 1) say(`a range runs through ${name(text)}`);
      });
    crossed(svg, around, scale, texts, boxes, say);
  }
}

// Lines through a text; names of phases stand among the lines.
function crossed(svg, around, scale, texts, boxes, say) {
  const outside = texts.map((text, i) => [text, boxes[i]]).filter(([text]) => !text.classList.contains('band-name'));
  for (const line of svg.querySelectorAll('path.line, path.leader')) {
    const length = line.getTotalLength();
    const samples = Math.min(400, Math.ceil(length / 3) + 1);
    for (let i = 0; i <= samples; i++) {
      const at = line.getPointAtLength(length * i / samples);
      const x = around.left + at.x * scale, y = around.top + at.y * scale;
      const hit = outside.find(([, rect]) =>
        x > rect.left + 1 && x < rect.right - 1 && y > rect.top + 3 && y < rect.bottom - 3);
      if (hit) { say(`a line runs through ${name(hit[0])}`); break; }
    }
  }
}

function buttons(view, say) {
  const page = view.document;
  const all = [...page.querySelectorAll('button')];
  if (!all.some((button) => button.id === 'theme' && shown(button))) say('there is no button for the theme');
  for (const figure of page.querySelectorAll('figure[data-name]'))
    if (figure.querySelector('svg') && ![...figure.querySelectorAll('button[data-save]')].some(shown))
      say(`${name(figure)} cannot be saved`);
  for (const button of all) {
    const rect = box(button);
    if (!shown(button) || rect.width < 20 || rect.height < 15 || rect.left < 0 || rect.right > view.innerWidth)
      say(`${name(button)} cannot be seen`);
  }
  const [first, ...rest] = all.filter(shown).map((button) => [button, box(button)]);
  for (const [button, rect] of rest)
    if (common(rect, first[1]) > 1) say(`${name(button)} covers ${name(first[0])}`);
  const theme = page.getElementById('theme');
  const ground = () => view.getComputedStyle(page.body).backgroundColor;
  const before = ground();
  theme?.click();
  if (ground() === before) say('the button changes no theme');
}

function look(frame) {
  const view = frame.contentWindow;
  const say = (what) => found.push(`${frame.dataset.page} at ${frame.width}: ${what}`);
  const first = view.document.querySelector('figure');
  if (!first) return say('there is no figure');
  // A part of it has to be on the first screen.
  const top = box(first).top;
  if (top > frame.height - 100) say(`the first figure begins at ${top.toFixed(0)} of ${frame.height}`);
  for (const folds of ['closed', 'open']) {
    if (folds === 'open') {
      view.document.querySelectorAll('details').forEach((details) => { details.open = true; });
      // As the page does, when it is told of it a moment later.
      view.dispatchEvent(new Event('resize'));
    }
    sideways(view, say);
    drawings(view, say);
  }
  buttons(view, say);
}

addEventListener('load', () => {
  const frames = [...document.querySelectorAll('iframe')];
  for (const frame of frames) {
    try { look(frame); } catch (error) { found.push(`${frame.dataset.page} at ${frame.width}: ${error.stack}`); }
    frame.remove();
  }
  const out = document.createElement('pre');
  out.id = 'found';
  out.textContent = [`looked at ${frames.length} frames, ${figures} drawings`, ...new Set(found)].join('\n');
  document.body.append(out);
});
