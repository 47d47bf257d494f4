// Shapes a model's answer: paragraphs, headings, lists, quotes, code, tables, emphasis, and links with their address
// visible. It makes elements and puts texts into them; nothing in the text becomes HTML, and nothing is loaded.

/** @param {string} text @returns {DocumentFragment} */
export function markdown(text) {
  const out = document.createDocumentFragment();
  const lines = text.replace(/\r\n?/g, '\n').split('\n');
  for (let i = 0; i < lines.length;) i = block(out, lines, i, 0);
  return out;
}

const deepest = 8;
// A text that is meant to be slow must not hold up the page: emphasis and code reach so far, and a longer paragraph has none.
const longest = 50000;
const ruled = 2000;

function block(out, lines, i, depth) {
  const line = lines[i];
  if (!line.trim()) return i + 1;
  const fence = /^\s*(`{3,}|~{3,})/.exec(line);
  if (fence) {
    const code = [];
    for (i++; i < lines.length && !lines[i].trim().startsWith(fence[1]); i++) code.push(lines[i]);
    const made = element('pre', element('code', code.join('\n')));
    made.tabIndex = 0;
    out.append(made);
    return i + 1;
  }
  const heading = /^(#{1,6})\s+(.*)$/.exec(line);
  if (heading) {
    out.append(inline(document.createElement(heading[1].length < 3 ? 'h3' : 'h4'), heading[2].replace(/\s#+\s*$/, '')));
    return i + 1;
  }
  if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
    out.append(document.createElement('hr'));
    return i + 1;
  }
  if (/^\s*>/.test(line) && depth < deepest) {
    const quoted = [];
    for (; i < lines.length && /^\s*>/.test(lines[i]); i++) quoted.push(lines[i].replace(/^\s*> ?/, ''));
    const quote = document.createElement('blockquote');
    for (let at = 0; at < quoted.length;) at = block(quote, quoted, at, depth + 1);
    out.append(quote);
    return i;
  }
  if (marker(line) && depth < deepest) return list(out, lines, i, depth);
  if (line.includes('|') && i + 1 < lines.length && lines[i + 1].length < ruled && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[i + 1]) && lines[i + 1].includes('-')) return table(out, lines, i);
  const paragraph = [line];
  for (i++; i < lines.length && lines[i].trim() && !/^\s*(`{3,}|~{3,}|#{1,6}\s|>)/.test(lines[i]) && !marker(lines[i]); i++) paragraph.push(lines[i]);
  out.append(inline(document.createElement('p'), paragraph.join('\n')));
  return i;
}

function marker(line) { return /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/.exec(line); }

function list(out, lines, i, depth) {
  const first = marker(lines[i]);
  const ordered = /\d/.test(first[2]);
  const made = document.createElement(ordered ? 'ol' : 'ul');
  if (ordered && Number.parseInt(first[2], 10) !== 1) made.start = Number.parseInt(first[2], 10);
  while (i < lines.length) {
    const at = marker(lines[i]);
    if (!at || at[1].length > first[1].length + 1 || /\d/.test(at[2]) !== ordered || at[1].length < first[1].length) break;
    const inner = [at[3]];
    const indent = at[1].length + at[2].length + 1;
    for (i++; i < lines.length; i++) {
      const spaces = /^\s*/.exec(lines[i])[0].length;
      if (!lines[i].trim()) {
        if (i + 1 >= lines.length || /^\s*/.exec(lines[i + 1])[0].length < Math.min(indent, 2)) break;
      } else if (spaces < Math.min(indent, 2) && marker(lines[i])) break;
      else if (spaces < Math.min(indent, 2) && !lines[i - 1].trim()) break;
      inner.push(lines[i].slice(Math.min(spaces, indent)));
    }
    const item = document.createElement('li');
    if (inner.length === 1) inline(item, inner[0]);
    else for (let at = 0; at < inner.length;) at = block(item, inner, at, depth + 1);
    made.append(item);
    while (i < lines.length && !lines[i].trim() && i + 1 < lines.length && marker(lines[i + 1])) i++;
  }
  out.append(made);
  return i;
}

function cells(line) { return line.trim().replace(/^\||\|$/g, '').split('|').map((cell) => cell.trim()); }

function table(out, lines, i) {
  const made = document.createElement('table');
  made.className = 'plain';
  const head = made.createTHead().insertRow();
  for (const cell of cells(lines[i])) {
    const th = inline(document.createElement('th'), cell);
    th.scope = 'col';
    head.append(th);
  }
  const body = made.createTBody();
  for (i += 2; i < lines.length && lines[i].includes('|'); i++) {
    const row = body.insertRow();
    for (const cell of cells(lines[i]).slice(0, 100)) inline(row.insertCell(), cell);
  }
  out.append(made);
  return i;
}

const spans = /(?<!`)(`{1,8})(?!`)([\s\S]{0,2000}?[^`])\1(?!`)|\*\*(?=\S)([\s\S]{0,2000}?\S)\*\*|__(?=\S)([\s\S]{0,2000}?\S)__|(?<![\w*])\*(?=\S)([^*\n]{0,2000}?\S)\*(?!\*)|(?<![\w_])_(?=\S)([^_\n]{0,2000}?\S)_(?![\w_])|!?\[([^\]\n]{0,500})\]\(\s*<?([^\s)>]{1,2000})>?[^)\n]{0,200}\)|(https?:\/\/[^\s<>"'`)\]]{1,2000})/g;

/** Puts a text with emphasis, code and links into an element. */
export function inline(into, text, depth = 0) {
  let at = 0;
  if (depth < deepest && text.length < longest) {
    for (const found of text.matchAll(spans)) {
      if (found.index > at) into.append(text.slice(at, found.index));
      at = found.index + found[0].length;
      const [whole, , code, strong1, strong2, em1, em2, label, address, bare] = found;
      if (code !== undefined) into.append(element('code', code));
      else if (strong1 ?? strong2) into.append(inline(document.createElement('strong'), strong1 ?? strong2, depth + 1));
      else if (em1 ?? em2) into.append(inline(document.createElement('em'), em1 ?? em2, depth + 1));
      else if (address !== undefined) into.append(...link(label, address, whole));
      else into.append(...link('', bare.replace(/[.,;:!?]+$/, ''), bare.replace(/[.,;:!?]+$/, '')), bare.slice(bare.replace(/[.,;:!?]+$/, '').length));
    }
  }
  if (at < text.length) into.append(text.slice(at));
  return into;
}

/** A link shows where it leads. What is no http address stays text. */
export function link(label, address, whole) {
  let url;
  try { url = new URL(address); } catch { return [whole]; }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return [whole];
  const a = element('a', url.href);
  a.href = url.href;
  a.target = '_blank';
  a.rel = 'noopener noreferrer nofollow';
  return label && label !== address ? [label + ' (', a, ')'] : [a];
}

export function element(name, ...content) {
  const made = document.createElement(name);
  made.append(...content);
  return made;
}
