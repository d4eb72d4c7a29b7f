// SPDX-License-Identifier: MIT

package docs

import (
	"strings"
	"testing"
	"testing/fstest"
)

// made returns the site of pages, by their files.
func made(t *testing.T, pages map[string]string) map[string]File {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range pages {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	site, err := New(files).Files()
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// mainPart returns what a page itself has, without what all pages have around it.
func mainPart(t *testing.T, f File) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(f.Body), "<main id=\"main\" tabindex=\"-1\">\n")
	part, _, ended := strings.Cut(rest, "</main>")
	if !ok || !ended {
		t.Fatalf("the page has no main part: %s", f.Body)
	}
	return part
}

func TestPages(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"a heading and a text": {"## The `ttl`, and what is **new**!\n\nOne line\nand another.", `<h2 id="the-ttl-and-what-is-new">The <code>ttl</code>, and what is <strong>new</strong>!</h2>
<p>One line
and another.</p>
`},
		"headings of the same name": {"## Go\n## Go\n## Go", `<h2 id="go">Go</h2>
<h2 id="go-1">Go</h2>
<h2 id="go-2">Go</h2>
`},
		"lists": {"Before:\n- one `a - b`\n- two\n\n1. first\n2. second", `<p>Before:</p>
<ul>
<li>one <code>a - b</code></li>
<li>two</li>
</ul>
<ol>
<li>first</li>
<li>second</li>
</ol>
`},
		"code": {"    a < b && c\n\n      # no heading\n\n```sh\n| not a table |\n```", `<pre class="block" tabindex="0"><code>a &lt; b &amp;&amp; c

  # no heading
</code></pre>
<pre class="block" tabindex="0"><code>| not a table |
</code></pre>
`},
		"a table": {"| name | |\n| --- | --- |\n| `a\\|b` | <script> & &lt;DIR> |\n| x | |", `<div class="scroll" tabindex="0">
<table>
<thead>
<tr><th scope="col">name</th><td></td></tr>
</thead>
<tbody>
<tr><td><code>a|b</code></td><td>&lt;script&gt; &amp; &lt;DIR&gt;</td></tr>
<tr><td>x</td><td></td></tr>
</tbody>
</table>
</div>
`},
		"a table without a head": {"| | |\n| --- | --- |\n| port | 8081 |", `<div class="scroll" tabindex="0">
<table>
<tbody>
<tr><th scope="row">port</th><td>8081</td></tr>
</tbody>
</table>
</div>
`},
		"links": {"[other.md](other.md#part), [**that** `one`](other.md), [README](../README.md), [up](#here), [out](https://example.com/?a=1&b=2), [source](../main.go), [the list](README.md)",
			`<p><a href="/_explorer/docs/other#part">The other &amp; its title</a>, <a href="/_explorer/docs/other"><strong>that</strong> <code>one</code></a>, <a href="/_explorer/docs/README">README</a>, <a href="#here">up</a>, ` +
				`<a href="https://example.com/?a=1&amp;b=2">out</a>, source, <a href="/_explorer/docs/">the list</a></p>
`},
		"a picture": {"![A list](images/list.png)", `<p><img src="/_explorer/docs/images/list.png" alt="A list"></p>
`},
		"marks that are none": {"2 * 3 [of] them! `**` and `[a](b)`", `<p>2 * 3 [of] them! <code>**</code> and <code>[a](b)</code></p>
`},
	} {
		t.Run(name, func(t *testing.T) {
			site := made(t, map[string]string{
				index: "# Pages\n\n| Group | |\n| --- | --- |\n| [A page](page.md) | |", "docs/page.md": "# Page\n\n" + c.page + "\n", "docs/other.md": "# The other & its title\n\n## Part\n",
				"README.md": "# Root\n", "docs/images/list.png": "PNG",
			})
			if got := strings.TrimPrefix(mainPart(t, site["page"]), "<h1 id=\"page\">Page</h1>\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Every page has the list of all pages, and in it its own parts.
func TestContents(t *testing.T) {
	site := made(t, map[string]string{
		index: "# Pages\n\n| Group & co | |\n| --- | --- |\n| [A page](page.md) | |\n| [Deploy](../deploy/README.md) | |", "docs/page.md": "# Page\n\n## One\n\n### Deeper\n\n## Two\n", "deploy/README.md": "# Deploy\n",
	})
	for name, want := range map[string]string{
		"": `<h2>Group &amp; co</h2>
<ul>
<li><a href="/_explorer/docs/page">A page</a></li>
<li><a href="/_explorer/docs/deploy">Deploy</a></li>
</ul>
`,
		"page": `<li><a href="/_explorer/docs/page" aria-current="page">A page</a>
<ul>
<li><a href="#one">One</a></li>
<li><a href="#two">Two</a></li>
</ul>
</li>
`,
		"deploy": `<li><a href="/_explorer/docs/deploy" aria-current="page">Deploy</a>
</li>
`,
	} {
		if !strings.Contains(string(site[name].Body), want) {
			t.Errorf("page %q lacks %s: %s", name, want, site[name].Body)
		}
	}
}

// What the site would show in another way than as a file is refused, with its line.
func TestOtherMarkdown(t *testing.T) {
	for _, text := range []string{
		"> quoted", "* star", "+ plus", "<b>markup</b>", "~~~\ncode\n~~~", "text\n===", "[name]: address", "  indented", "- one\n  more", "- one\n\n    code",
		"```\nno end", "| no | rule |", "| a | b |\n| --- | --- |\n| c |", "#heading", "a **half", "# second title", "### too deep", "a `half", "[half](of a link)", "| a |\n| --- |\n| `half |",
	} {
		_, err := New(fstest.MapFS{index: {Data: []byte("# Pages\n\n" + text + "\n")}}).Files()
		if err == nil {
			t.Errorf("%q is taken", text)
		} else if !strings.HasPrefix(err.Error(), index+": ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for name, files := range map[string]fstest.MapFS{
		"no first page": {"docs/page.md": {Data: []byte("# Page\n")}}, "no title": {index: {Data: []byte("Text\n")}}, "nothing in it": {index: {}},
	} {
		if _, _, err := New(files).File(""); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
