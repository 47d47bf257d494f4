// What every page needs. Nothing here makes HTML of text: elements are made, and text is put into them.
const words = document.getElementById('words')?.dataset ?? {};
const root = document.documentElement;

/** Says something to screen readers, every five seconds at most. */
let saidAt = 0;
export function say(text) {
  const polite = document.getElementById('polite');
  const now = Date.now();
  if (!polite || now - saidAt < 5000) return;
  saidAt = now;
  polite.textContent = text;
}

// Times: written in UTC by the server, shown in the reader's zone, which is named at the foot of the page.
const language = root.lang || undefined;
function zoned(options) {
  try { return new Intl.DateTimeFormat(language, { ...options, timeZone: root.dataset.zone || undefined }); } catch { return new Intl.DateTimeFormat(language, options); }
}
const clock = zoned({ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const day = zoned({ year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const dateOnly = zoned({ year: 'numeric', month: '2-digit', day: '2-digit' });

/** Shows all times of an element in the reader's zone. */
export function localise(within) {
  const today = dateOnly.format(new Date());
  for (const time of within.querySelectorAll('time[datetime]:not([data-local])')) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.dataset.local = '';
    time.textContent = dateOnly.format(at) === today ? clock.format(at) : day.format(at);
  }
}
// A time's whole date, with its zone, is written for who points at it: a list has a hundred and fifty, which take longer than the page.
let full;
document.addEventListener('pointerover', (event) => {
  const time = event.target.closest?.('time[data-local]:not([title])');
  if (!time) return;
  full ??= zoned({ dateStyle: 'full', timeStyle: 'long' });
  time.title = full.format(new Date(time.dateTime)) + '\n' + time.dateTime;
});
for (const place of document.querySelectorAll('[data-zone-name]')) place.textContent = clock.resolvedOptions().timeZone;
localise(document);
for (const field of document.querySelectorAll('[data-my-zone]')) field.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;

// Copying: a button copies its data-copy, or the text of the element that data-copy-of names.
document.addEventListener('click', async (event) => {
  const button = event.target.closest?.('button[data-copy],button[data-copy-of]');
  if (!button) return;
  const text = button.dataset.copy ?? document.getElementById(button.dataset.copyOf)?.textContent ?? '';
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no permission, or a plain address: by hand
    const area = document.createElement('textarea');
    area.value = text;
    button.after(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    button.focus();
  }
  button.textContent = words.copied;
  say(words.copied);
  setTimeout(() => { button.textContent = before; }, 2000);
});

// Dialogs of browsers that do not know commandfor. A form of each closes it.
if (!('commandForElement' in HTMLButtonElement.prototype)) {
  document.addEventListener('click', (event) => {
    const button = event.target.closest?.('button[commandfor]');
    if (button) document.getElementById(button.getAttribute('commandfor'))?.showModal();
  });
}

// A question that came with the page is asked above it; without scripts it stands there. Whoever says no is back where the rows are
// still chosen. A refusal of what was typed into a dialog opens it again.
for (const ask of document.querySelectorAll('dialog[data-ask][open]')) {
  ask.removeAttribute('open');
  ask.addEventListener('close', () => (document.querySelector('.pick input:checked') ?? document.getElementById('main'))?.focus());
  ask.showModal();
}

// On a narrow page the navigation is one line: the entry of this page is in sight.
if (matchMedia('(max-width:760px)').matches) {
  const list = document.querySelector('nav ul'), here = list?.querySelector('[aria-current]');
  if (here) list.scrollLeft = here.offsetLeft - list.clientWidth / 2;
}

// Forms: a second press sends nothing, and what must be typed must be typed.
document.addEventListener('submit', (event) => {
  const form = event.target;
  const typed = form.querySelector('[data-must]');
  if (typed) typed.setCustomValidity(typed.value === typed.dataset.must ? '' : typed.dataset.must);
  if (typed && !typed.reportValidity()) { event.preventDefault(); return; }
  if (form.method !== 'post') {
    for (const field of form.elements) if (field.name && field.value === '') field.disabled = true; // short addresses
    return;
  }
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = '1';
});
document.addEventListener('input', (event) => { if (event.target.dataset?.must !== undefined) event.target.setCustomValidity(''); });
addEventListener('pageshow', () => {
  for (const form of document.forms) {
    delete form.dataset.sent;
    for (const field of form.elements) if (field.disabled && field.name && form.method !== 'post') field.disabled = false;
  }
});
// A select with data-shows="group" shows, of what has data-of-group, what is of the chosen one.
function shows(select) {
  const name = 'data-of-' + select.dataset.shows;
  for (const part of document.querySelectorAll(`[${name}]`)) part.hidden = part.getAttribute(name) !== select.value;
}
for (const select of document.querySelectorAll('select[data-shows]')) shows(select);
document.addEventListener('change', (event) => {
  if (event.target.dataset?.shows) shows(event.target);
  const all = event.target.closest?.('[data-all]');
  if (all) for (const box of all.closest('table').querySelectorAll('tbody .pick input')) box.checked = all.checked;
  if (event.target.matches?.('select[data-go]')) event.target.form.requestSubmit();
});

/**
 * <live-region every="5">: fetches the page's own address as a document and swaps, of its children, those with an id that
 * differ. It stops in a hidden tab and after half an hour. An attribute "while" names a selector: without a match it rests.
 */
class LiveRegion extends HTMLElement {
  connectedCallback() {
    this.until = Date.now() + 30 * 60 * 1000;
    this.plan();
    this.shown = () => { if (!document.hidden) { this.until = Date.now() + 30 * 60 * 1000; this.load(); } };
    document.addEventListener('visibilitychange', this.shown);
  }

  disconnectedCallback() {
    clearTimeout(this.timer);
    document.removeEventListener('visibilitychange', this.shown);
  }

  plan() {
    clearTimeout(this.timer);
    if (this.hasAttribute('off')) return;
    if (this.hasAttribute('while') && !this.querySelector(this.getAttribute('while'))) return;
    this.timer = setTimeout(() => this.load(), 1000 * (Number(this.getAttribute('every')) || 5));
  }

  load() {
    if (document.hidden || this.busy || this.hasAttribute('off')) return;
    if (Date.now() > this.until) { this.tell(words.stopped); return; }
    if (this.querySelector('dialog[open],input:focus,select:focus,textarea:focus,.pick input:checked')) { this.plan(); return; }
    this.busy = true;
    const request = new XMLHttpRequest();
    request.open('GET', location.href);
    request.responseType = 'document';
    request.setRequestHeader('Console-Refresh', '1'); // the rest of the page is not wanted
    request.timeout = 20000;
    request.onloadend = () => {
      this.busy = false;
      if (request.status === 200 && request.response) this.swap(request.response);
      else this.tell(request.status === 401 ? words.over : words.away);
      if (request.status !== 401) this.plan();
    };
    request.send();
  }

  swap(next) {
    const from = this.id && next.getElementById(this.id);
    if (!from) return;
    this.tell('');
    const focused = document.activeElement;
    for (const now of [...this.children]) {
      const other = now.id && [...from.children].find((child) => child.id === now.id);
      if (!other) continue;
      const original = other.textContent + '\n' + shape(other);
      if (now.original === original) continue;
      const fresh = document.importNode(other, true);
      localise(fresh);
      const mark = focused && now.contains(focused) ? pathTo(now, focused) : null;
      now.replaceWith(fresh);
      fresh.original = original;
      this.dispatchEvent(new CustomEvent('swapped', { bubbles: true, detail: fresh })); // what makes a part of it focusable
      if (mark) follow(fresh, mark)?.focus({ preventScroll: true });
    }
    if (from.hasAttribute('while') === false && this.hasAttribute('while')) this.removeAttribute('while');
    this.setAttribute('every', from.getAttribute('every'));
  }

  tell(text) {
    const line = this.querySelector(':scope > .live') ?? document.createElement('p');
    line.className = 'live hint';
    line.textContent = text;
    if (text) this.append(line); else line.remove();
  }
}
/** What of an element a refresh may change beside its text. */
function shape(element) {
  return [...element.querySelectorAll('*')].map((e) => e.tagName + [...e.attributes].map((a) => a.name + '=' + a.value).join(' ')).join('\n');
}
function pathTo(within, element) {
  const path = [];
  for (; element !== within; element = element.parentElement) path.unshift([...element.parentElement.children].indexOf(element));
  return path;
}
function follow(within, path) {
  let element = within;
  for (const index of path) element = element?.children[index];
  return element;
}
customElements.define('live-region', LiveRegion);

// Tables that are wider than their place are scrolled with the keyboard as well.
function reachable() {
  const places = [...document.querySelectorAll('.scroll')].map((place) => [place, place.scrollWidth > place.clientWidth]); // all are measured before one is changed
  for (const [place, wider] of places) {
    if (!wider) { place.removeAttribute('tabindex'); continue; }
    place.tabIndex = 0;
    place.setAttribute('role', 'region');
    place.setAttribute('aria-label', place.querySelector('caption')?.textContent ?? '');
  }
}
addEventListener('resize', reachable);
addEventListener('load', reachable); // modules run before it; earlier the page would be laid out twice
document.addEventListener('swapped', reachable);
document.addEventListener('toggle', reachable, true);

// Keys. Single letters can be switched off.
let afterG = 0;
document.addEventListener('keydown', (event) => {
  const field = event.target.closest?.('input,textarea,select');
  if ((event.ctrlKey || event.metaKey) && event.key === 'Enter' && field?.form) { event.preventDefault(); field.form.requestSubmit(); return; }
  if (field || event.ctrlKey || event.metaKey || event.altKey || root.dataset.keys === 'off' || document.querySelector('dialog[open]')) return;
  if (Date.now() - afterG < 1500) {
    afterG = 0;
    const link = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); link.click(); return; }
  }
  switch (event.key) {
    case '/': document.getElementById('find')?.focus(); break;
    case '?': document.getElementById('shortcuts')?.showModal(); break;
    case 'g': afterG = Date.now(); return;
    case 'j': step(1); break;
    case 'k': step(-1); break;
    case 'x': document.querySelector('tr.at .pick input')?.click(); return;
    case 'Enter': {
      const link = document.querySelector('tr.at th a, tr.at td a');
      if (!link || event.target !== document.body) return;
      link.click();
      break;
    }
    default: return;
  }
  event.preventDefault();
});
function step(by) {
  const rows = [...document.querySelectorAll('main tbody tr')];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains('at'));
  rows[at]?.classList.remove('at');
  const row = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
  row.classList.add('at');
  row.scrollIntoView({ block: 'nearest' });
}
document.querySelector('[role=alert]')?.focus();
document.querySelector('dialog:not([open]) .field.wrong')?.closest('dialog').showModal();

// <tab-set>: of its sections with data-tab one is shown; without scripts all are.
class TabSet extends HTMLElement {
  connectedCallback() {
    const sections = [...this.querySelectorAll(':scope > [data-tab]')];
    if (sections.length < 2 || this.querySelector('.tabs')) return;
    const bar = document.createElement('div');
    bar.className = 'tabs';
    bar.setAttribute('role', 'tablist');
    const tabs = sections.map((section, at) => {
      const tab = document.createElement('button');
      tab.type = 'button';
      tab.textContent = section.dataset.tab;
      tab.setAttribute('role', 'tab');
      section.setAttribute('role', 'tabpanel');
      section.setAttribute('aria-label', section.dataset.tab);
      section.querySelector('h3')?.remove();
      tab.addEventListener('click', () => choose(at));
      tab.addEventListener('keydown', (event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (by) { choose((at + by + tabs.length) % tabs.length); tabs[(at + by + tabs.length) % tabs.length].focus(); event.preventDefault(); }
      });
      bar.append(tab);
      return tab;
    });
    const choose = (chosen) => tabs.forEach((tab, at) => {
      tab.setAttribute('aria-selected', String(at === chosen));
      tab.tabIndex = at === chosen ? 0 : -1;
      sections[at].hidden = at !== chosen;
    });
    this.prepend(bar);
    choose(0);
  }
}
customElements.define('tab-set', TabSet);
