"""The page of a query: one self-contained HTML document, which draws the records of its micro-batches.

    records ─▶ view.py: what is drawn, as JSON ─▶ document.py: HTML, style, scripts ─┬─▶ a notebook's output, in a frame
               runs.py: record files, followed ─▶ server.py: the same over HTTP ─────┤
                                                                                     └─▶ a file, of a finished run

The browser's side: ``dom.js`` makes elements and texts, ``graph.js`` the topology, ``charts.js`` micro-batches over
time, ``bars.js`` shares and lengths, ``tables.js`` the table behind each picture, ``headline.js`` what to change,
``component.js`` the chosen one; ``page.js`` puts them together. Names in a record are data: they only become text
nodes, and the policy of the document runs no other scripts.
"""

__all__: list[str] = []
