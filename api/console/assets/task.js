// The answer of a call: its text while it comes, and shaped once it is there.
import { markdown } from './markdown.js';

// Texts that come, by their addresses. A refresh of the page exchanges the elements, and reads on.
const texts = new Map();

class ComingText {
  constructor(address) {
    this.text = '';
    this.readers = new Set();
    this.abort = new AbortController();
    this.read(address);
  }

  async read(address) {
    try {
      const answer = await fetch(address, { signal: this.abort.signal });
      if (!answer.ok) return;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        this.text += value;
        for (const element of this.readers) element.show(this.text);
      }
    } catch { /* the page shows the answer once it has ended */ }
  }
}

/** <live-text src>: the text at an address, as it comes. */
class LiveText extends HTMLElement {
  connectedCallback() {
    const address = this.getAttribute('src');
    if (!texts.has(address)) texts.set(address, new ComingText(address));
    this.coming = texts.get(address);
    this.coming.readers.add(this);
    if (this.coming.text) this.show(this.coming.text);
  }

  disconnectedCallback() {
    const { coming } = this;
    coming.readers.delete(this);
    setTimeout(() => {
      if (coming.readers.size) return;
      coming.abort.abort();
      texts.delete(this.getAttribute('src'));
    });
  }

  show(text) {
    this.classList.add('answer', 'coming');
    this.textContent = text; // as it comes; it is shaped at the end
  }
}
customElements.define('live-text', LiveText);

/** <shaped-text>: its text as a model means it. Without scripts it is as it was written. */
class ShapedText extends HTMLElement {
  connectedCallback() {
    if (this.classList.contains('answer')) return;
    this.classList.add('answer');
    this.replaceChildren(markdown(this.textContent));
  }
}
customElements.define('shaped-text', ShapedText);
