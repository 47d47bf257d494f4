// <try-call>: a form that calls the API as a token, and what came of it.
import { say } from './app.js';
import { element, markdown } from './markdown.js';

const mostRaw = 64 * 1024;

/** How each chat format asks, and where its stream has the next piece of text and the tokens used. */
const chats = {
  chat: {
    path: () => '/v1/chat/completions',
    body: (t) => ({ model: t.model, messages: [...(t.system ? [{ role: 'system', content: t.system }] : []), ...t.turns], max_completion_tokens: t.most, ...(t.stream ? { stream: true, stream_options: { include_usage: true } } : {}) }),
    piece: (e) => e.choices?.[0]?.delta?.content ?? e.choices?.[0]?.message?.content,
    used: (e) => e.usage && [e.usage.prompt_tokens, e.usage.completion_tokens],
  },
  responses: {
    path: () => '/v1/responses',
    body: (t) => ({ model: t.model, ...(t.system ? { instructions: t.system } : {}), input: t.turns, max_output_tokens: t.most, store: false, ...(t.stream ? { stream: true } : {}) }),
    piece: (e) => (e.type === 'response.output_text.delta' ? e.delta : e.object === 'response' ? texts(e.output?.flatMap((o) => o.content ?? [])) : undefined),
    used: (e) => { const u = e.response?.usage ?? e.usage; return u && [u.input_tokens, u.output_tokens]; },
  },
  messages: {
    path: () => '/v1/messages',
    headers: { 'anthropic-version': '2023-06-01' },
    body: (t) => ({ model: t.model, max_tokens: t.most || 1024, ...(t.system ? { system: t.system } : {}), messages: t.turns, ...(t.stream ? { stream: true } : {}) }),
    piece: (e) => (e.type === 'content_block_delta' ? e.delta?.text : e.type === 'message' ? texts(e.content) : undefined),
    used: (e) => { const u = e.usage ?? e.message?.usage; return u && [u.input_tokens, u.output_tokens]; },
  },
  gemini: {
    path: (t) => `/v1beta/models/${encodeURIComponent(t.model)}:${t.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: (t) => ({ ...(t.system ? { systemInstruction: { parts: [{ text: t.system }] } } : {}), contents: t.turns.map((turn) => ({ role: turn.role === 'user' ? 'user' : 'model', parts: [{ text: turn.content }] })), generationConfig: { maxOutputTokens: t.most } }),
    piece: (e) => texts(e.candidates?.[0]?.content?.parts?.filter((p) => !p.thought)),
    used: (e) => e.usageMetadata && [e.usageMetadata.promptTokenCount, e.usageMetadata.candidatesTokenCount],
  },
};
function texts(parts) { return parts?.map((part) => part.text ?? '').join(''); }

class TryCall extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector('form');
    this.output = this.querySelector('.output');
    this.words = this.querySelector('[data-words]').dataset;
    this.turns = [];
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (!this.busy) this.run(Object.fromEntries(new FormData(this.form)));
    });
    this.form.querySelector('[data-stop]')?.addEventListener('click', () => this.abort?.abort());
    this.form.addEventListener('input', () => this.look());
    this.form.querySelector('button:not([type=button])').disabled = false; // until here a press would only load the page
    this.look();
    const id = this.dataset.address !== undefined && new URLSearchParams(location.search).get('id');
    if (id && this.dataset.kind === 'video') this.follow(id);
  }

  disconnectedCallback() { this.abort?.abort(); clearTimeout(this.timer); this.gone = true; }

  get to() { return this.dataset.to; }

  /** What follows from the model: lengths, sizes, the price, the snippets. */
  look() {
    const values = Object.fromEntries(new FormData(this.form));
    const model = [...document.querySelectorAll('#models option')].find((option) => option.value === values.model);
    if (this.dataset.kind === 'video' && model && this.model !== values.model) {
      this.model = values.model;
      this.choices('seconds', model.dataset.seconds);
      this.choices('size', model.dataset.sizes);
      values.seconds = this.form.elements.seconds?.value;
    }
    this.estimate(model, values);
    for (const code of document.querySelectorAll('#code code')) {
      code.template ??= code.textContent;
      code.textContent = snippet(code.template, code.id, values);
    }
  }

  choices(name, list) {
    const select = this.form.elements[name];
    if (!select || select.tagName !== 'SELECT' || !list) return; // not known: what stands there is as good
    const before = select.value;
    const offered = list.split(' ');
    while (select.options.length > 1) select.remove(1);
    for (const value of offered) select.add(new Option(value, value));
    select.value = offered.includes(before) ? before : offered[0] && name === 'seconds' ? offered[0] : '';
  }

  estimate(model, values) {
    const line = this.form.querySelector('[data-estimate]');
    if (!line) return;
    line.textContent = '';
    let price;
    try { price = model?.dataset.price && JSON.parse(model.dataset.price); } catch { return; }
    if (!price) return;
    let cost = Number(price.request ?? 0);
    if (this.dataset.kind === 'video') cost += Number(price.second ?? 0) * Number(values.seconds || 0) + Number(price.video ?? 0);
    else if (this.dataset.kind === 'image') cost += Number(price.image ?? 0);
    else if (this.dataset.kind === 'chat') cost += (Number(price.input ?? 0) * (values.prompt ?? '').length / 4 + Number(price.output ?? 0) * Number(values.most || 1024)) / 1e6;
    if (cost > 0) line.textContent = `${line.dataset.about} ${cost.toPrecision(2)}`;
  }

  async run(values) {
    this.busy = true;
    this.began = performance.now();
    this.abort = new AbortController();
    this.raw = { request: '', answer: '' };
    const stop = this.form.querySelector('[data-stop]');
    const send = this.form.querySelector('button:not([type=button])');
    send.disabled = true;
    if (stop) stop.hidden = false;
    this.output.setAttribute('aria-busy', 'true');
    try {
      await this[this.dataset.kind](values);
    } catch (error) {
      this.failed(error.name === 'AbortError' ? this.words.stopped : error.said ?? this.words.cut);
    } finally {
      this.busy = false;
      send.disabled = false;
      if (stop) stop.hidden = true;
      this.output.setAttribute('aria-busy', 'false');
    }
  }

  /** Sends, and throws what the API refuses in its own words. */
  async send(path, body, headers = {}) {
    const form = body instanceof FormData;
    if (this.dataset.pays) {
      if (!(await this.agreed())) throw Object.assign(new Error('refused'), { said: this.words.stopped });
      headers = { ...headers, 'Console-Pays': this.dataset.pays };
    }
    this.raw.request = `POST ${path.split('?')[0]}\n\n` + (form ? '(form)' : JSON.stringify(body, null, 2));
    const answer = await fetch(this.to + path, {
      method: 'POST', body: form ? body : JSON.stringify(body), signal: this.abort.signal, redirect: 'error',
      headers: form ? headers : { 'Content-Type': 'application/json', ...headers },
    });
    this.firstAt = performance.now();
    this.headers = answer.headers;
    if (!answer.ok) {
      const text = await answer.text();
      this.keep(text);
      throw Object.assign(new Error('refused'), { said: saidIn(text) || `${answer.status}` });
    }
    return answer;
  }

  /** Asks, once for each page, whether somebody else's token shall pay. */
  agreed() {
    const dialog = document.getElementById('pays');
    if (dialog.returnValue === 'yes') return true;
    dialog.showModal();
    return new Promise((done) => dialog.addEventListener('close', () => done(dialog.returnValue === 'yes'), { once: true }));
  }

  keep(text) { if (this.raw.answer.length < mostRaw) this.raw.answer += text.slice(0, mostRaw - this.raw.answer.length); }

  async chat(values) {
    const format = chats[values.format ?? this.dataset.format ?? 'chat'];
    const asked = { role: 'user', content: values.prompt };
    const stream = this.form.elements.stream ? Boolean(values.stream) : true;
    const shown = element('div');
    shown.className = 'answer';
    const turn = element('div', element('b', `${this.words.you}`), element('p', values.prompt), element('b', values.model), shown);
    turn.className = 'turn';
    this.output.append(turn);
    let text = '';
    let used;
    const take = (event) => {
      if (event.error) throw Object.assign(new Error('refused'), { said: event.error.message });
      const piece = format.piece(event);
      if (piece) {
        text += piece;
        shown.textContent = text; // as it comes; it is shaped at the end
      }
      const u = format.used(event);
      if (u) used = [u[0] ?? used?.[0], u[1] ?? used?.[1]];
    };
    const t = { model: values.model, system: values.system, most: Number(values.most) || undefined, stream, turns: [...this.turns, asked] };
    try {
      const answer = await this.send(format.path(t), format.body(t), format.headers);
      if (stream) await this.events(answer, take);
      else {
        const whole = await answer.text();
        this.keep(whole);
        take(JSON.parse(whole));
      }
    } finally {
      if (text) {
        shown.replaceChildren(markdown(text));
        this.turns.push(asked, { role: 'assistant', content: text });
      }
      this.facts(turn, used);
    }
    say(this.words.finished);
  }

  /** Reads server-sent events. */
  async events(answer, take) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    let first = true;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      if (first) { this.firstAt = performance.now(); first = false; }
      this.keep(value);
      rest += value;
      const lines = rest.split('\n');
      rest = lines.pop();
      for (const line of lines) {
        if (!line.startsWith('data:')) continue;
        const data = line.slice(5).trim();
        if (!data || data === '[DONE]') continue;
        let event;
        try { event = JSON.parse(data); } catch { continue; }
        take(event);
      }
    }
  }

  async image(values) {
    const body = { model: values.model, prompt: values.prompt, n: 1, ...(values.size ? { size: values.size } : {}) };
    const whole = await (await this.send('/v1/images/generations', body)).json();
    this.output.replaceChildren();
    for (const made of whole.data ?? []) {
      if (made.b64_json) {
        const img = document.createElement('img');
        img.src = 'data:image/png;base64,' + made.b64_json;
        img.alt = values.prompt;
        this.output.append(img);
      } else if (made.url) this.output.append(element('p', linkTo(made.url, this.words.link + ' ' + made.url)));
    }
    this.keep(JSON.stringify(whole, (key, value) => (key === 'b64_json' ? `(${value.length})` : value), 2));
    this.facts(this.output, whole.usage && [whole.usage.input_tokens, whole.usage.output_tokens]);
  }

  async speech(values) {
    const answer = await this.send('/v1/audio/speech', { model: values.model, input: values.prompt, voice: values.voice || 'alloy' });
    const sound = await answer.blob();
    const audio = document.createElement('audio');
    audio.controls = true;
    audio.src = URL.createObjectURL(sound);
    this.output.replaceChildren(audio);
    this.keep(`(${sound.type}, ${sound.size})`);
    this.facts(this.output);
  }

  async transcribe(values) {
    const form = new FormData();
    form.set('model', values.model);
    form.set('file', values.file);
    const text = await (await this.send('/v1/audio/transcriptions', form)).text();
    this.keep(text);
    let said = text;
    try { said = JSON.parse(text).text ?? text; } catch { /* a plain text */ }
    const shown = element('p', said);
    shown.className = 'answer';
    this.output.replaceChildren(shown);
    this.facts(this.output);
  }

  async video(values) {
    const body = { model: values.model, prompt: values.prompt, ...(values.seconds ? { seconds: values.seconds } : {}), ...(values.size ? { size: values.size } : {}) };
    // One key for one wish: a second press, or a reload, finds the task that was made and pays nothing.
    const wish = JSON.stringify(body);
    if (this.wish !== wish || this.ended) { this.wish = wish; this.key = crypto.randomUUID(); }
    this.ended = false;
    const task = await (await this.send('/v1/videos', body, { 'Idempotency-Key': this.key })).json();
    this.keep(JSON.stringify(task, null, 2));
    if (this.dataset.address !== undefined) {
      const here = new URL(location.href);
      here.searchParams.set('id', task.id);
      history.replaceState(null, '', here);
    }
    await this.follow(task.id, task);
  }

  /** Shows a task until it has ended, and plays it. */
  async follow(id, task) {
    this.raw ??= { request: '', answer: '' };
    const state = element('p');
    const bar = document.createElement('progress');
    bar.max = 100;
    bar.setAttribute('aria-label', this.words.progress);
    const play = element('div');
    this.output.replaceChildren(state, bar, play);
    for (;;) {
      if (task) {
        state.textContent = this.stateOf(task);
        if (task.status === 'queued') bar.removeAttribute('value'); else bar.value = task.progress ?? 0;
        if (task.status === 'completed' || task.status === 'failed') break;
      }
      await new Promise((resolve, reject) => {
        this.timer = setTimeout(resolve, task ? 1000 : 0);
        this.abort?.signal.addEventListener('abort', () => reject(Object.assign(new Error('stopped'), { name: 'AbortError' })), { once: true });
      });
      if (this.gone) return;
      while (document.hidden) await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }));
      const answer = await fetch(`${this.to}/v1/videos/${encodeURIComponent(id)}`).catch(() => null);
      if (!answer) continue; // away for a moment
      const text = await answer.text();
      if (!answer.ok) {
        if (answer.status >= 500 || answer.status === 429) continue;
        this.failed(saidIn(text) || `${answer.status}`);
        return;
      }
      task = JSON.parse(text);
    }
    bar.remove();
    this.ended = true;
    this.raw.answer = JSON.stringify(task, null, 2);
    if (task.status === 'failed') {
      this.failed(task.error?.message ?? this.words.failed);
    } else {
      const content = `${this.to}/v1/videos/${encodeURIComponent(id)}/content`;
      const video = document.createElement('video');
      video.controls = true;
      video.muted = true;
      video.playsInline = true;
      video.src = content;
      video.autoplay = !matchMedia('(prefers-reduced-motion: reduce)').matches;
      const save = linkTo(content, this.words.download);
      save.download = id + '.mp4';
      const links = element('p', save, ' · ', linkTo(`${this.dataset.task}/${encodeURIComponent(id)}`, this.words.task), ' ', element('code', id));
      play.replaceChildren(video, links);
      say(this.words.finished);
    }
    this.facts(play);
  }

  stateOf(task) {
    if (task.status === 'completed') return this.words.finished;
    if (task.status === 'failed') return this.words.failed;
    if (task.status === 'queued') return task.queue_position ? `${this.words.queued} (${this.words.line} ${task.queue_position})` : this.words.queued;
    return `${this.words.progress} ${task.progress ?? 0} %`;
  }

  failed(text) {
    const line = element('p', text);
    line.className = 'said bad';
    line.setAttribute('role', 'alert');
    this.output.append(line);
    if (this.raw && !this.output.querySelector('.facts-line')) this.facts(this.output);
  }

  /** Time, tokens, limits left and both sides raw, below an answer. */
  facts(into, used) {
    into.querySelector(':scope > .facts-line')?.remove();
    const about = [];
    if (this.began) about.push(`${Math.round(performance.now() - this.began)} ${this.words.ms}`);
    if (this.firstAt) about.push(`${this.words.first} ${Math.round(this.firstAt - this.began)} ${this.words.ms}`);
    if (used) about.push(`${this.words.tokens} ${used[0] ?? '–'} / ${used[1] ?? '–'}`);
    const left = this.headers?.get('x-ratelimit-remaining-requests');
    if (left) about.push(`${this.words.left} ${left}`);
    const line = element('div', element('small', about.join(' · ')));
    line.className = 'facts-line';
    const id = this.headers?.get('x-request-id');
    if (id) line.append(element('small', `${this.words.id} `, this.dataset.call ? linkTo(`${this.dataset.call}/${encodeURIComponent(id)}`, id) : element('code', id)));
    if (this.raw?.request || this.raw?.answer) {
      const raw = element('details', element('summary', this.words.raw), element('h3', this.words.request), scrolled(this.raw.request),
        element('h3', this.words.answer), scrolled(this.raw.answer));
      line.append(raw);
    }
    into.append(line);
  }
}

function linkTo(address, text) {
  const a = element('a', text);
  const url = new URL(address, location.href);
  if (url.protocol === 'http:' || url.protocol === 'https:') a.href = url.href;
  if (url.origin !== location.origin) { a.rel = 'noopener noreferrer'; a.target = '_blank'; }
  return a;
}

function saidIn(text) {
  try {
    const body = JSON.parse(text);
    return body.error?.message ?? body.message ?? '';
  } catch { return ''; }
}

/** A snippet with what stands in the form. Each language quotes in its own way. */
function snippet(template, id, values) {
  const model = JSON.stringify(values.model ?? '');
  const prompt = JSON.stringify(values.prompt ?? '');
  const put = (text, quote) => text.replaceAll('"MODEL_HERE"', () => quote(model)).replaceAll('"PROMPT_HERE"', () => quote(prompt));
  if (id === 's-curl') return put(template, (text) => text.replaceAll("'", "'\\''"));
  if (id === 's-go') return template.replaceAll('\\"MODEL_HERE\\"', () => JSON.stringify(model).slice(1, -1)).replaceAll('\\"PROMPT_HERE\\"', () => JSON.stringify(prompt).slice(1, -1));
  return put(template, (text) => text);
}

customElements.define('try-call', TryCall);

/** A text in letters of one width, which the keyboard reaches to scroll it. */
function scrolled(text) {
  const made = element('pre', element('code', text));
  made.tabIndex = 0;
  return made;
}
