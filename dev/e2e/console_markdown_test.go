package e2e_test

import (
	"testing"

	"modelrelay/dev/e2e/stack"
)

// shapeTexts gives the renderer of answers texts made of what Markdown is made of, and of hostile texts, and reports what
// it makes of them that it must not: another element or attribute, an address that is no http, an image, a lost word, an
// error, or more than two seconds for one text.
const shapeTexts = `(async () => {
	const { markdown } = await import(document.querySelector('script[src*="app.js"]').src.replace('app.js', 'markdown.js'));
	const parts = ['# ', '## ', '- ', '1. ', '> ', '    ', '\n', '\n\n', '|', '|-|-|', '~~~', '` + "`', '``', '```" + `', '*', '**', '_', '__', '***', '---', '[', '](', ')', '!', '<', '>',
		'http://a.example/', 'https://b.example/?q=1', 'javascript:alert(1)', 'data:text/html,x', '//c.example', '<script>globalThis.harmed=1</script>',
		'<img src=x onerror=globalThis.harmed=1>', '&lt;b&gt;', '\u2028', '\u202e', '\u0000', '\ud800', 'wort', 'ein Satz.', '中文', '\t', '\r\n', '&', '"', "'", '{{.}}', '$' + '{x}'];
	const elements = new Set(['P', 'H3', 'H4', 'UL', 'OL', 'LI', 'BLOCKQUOTE', 'PRE', 'CODE',
		'TABLE', 'THEAD', 'TBODY', 'TR', 'TH', 'TD', 'HR', 'EM', 'STRONG', 'A']);
	const attributes = new Set(['href', 'target', 'rel', 'start', 'class', 'scope', 'tabindex']);
	const wrong = [];
	let seed = 20261122;
	const random = (n) => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed % n; };
	const shape = (text, what) => {
		const began = performance.now();
		let made;
		try { made = markdown(text); } catch (error) { wrong.push(what + ': ' + error); return; }
		const took = performance.now() - began;
		if (took > 2000) wrong.push(what + ' took ' + took + ' ms');
		for (const element of made.querySelectorAll('*')) {
			if (!elements.has(element.tagName)) wrong.push(what + ' has ' + element.tagName);
			for (const attribute of element.attributes) if (!attributes.has(attribute.name))
				wrong.push(what + ' has the attribute ' + attribute.name);
			if (element.tagName === 'A' && !/^https?:/.test(element.href)) wrong.push(what + ' leads to ' + element.href);
		}
		const words = (text.match(/wort|中文/g) ?? []).length;
		if ((made.textContent.match(/wort|中文/g) ?? []).length < words) wrong.push(what + ' lost a word');
	};
	for (let i = 0; i < 4000 && wrong.length < 5; i++) {
		let text = '';
		for (let n = 1 + random(40); n > 0; n--) text += parts[random(parts.length)];
		shape(text, JSON.stringify(text));
	}
	for (const part of [...parts, '**a ', '*a ', '_a ', '[a](', '- - ', '> - ', '| |', ' |\n', '|-', '` + "`a" + `', '# # ', '  ']) {
		shape(part.repeat(40000), 'many ' + JSON.stringify(part));
		shape('a|b\n' + part.repeat(40000) + 'x', 'a table of ' + JSON.stringify(part));
	}
	if (globalThis.harmed !== undefined) wrong.push('a script ran');
	return wrong;
})()`

// TestConsoleMarkdown: the renderer of answers produces only known markup, loses no word of a model's text, and ends in time.
func TestConsoleMarkdown(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	b := newBrowser(t, stack.SharedRelay(t).StartGateway(stack.GatewayOptions{AdminKey: stack.AdminKey}))
	b.open("/console/try")
	found, err := evaluate[[]string](b, shapeTexts)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range found {
		t.Error(wrong)
	}
}
