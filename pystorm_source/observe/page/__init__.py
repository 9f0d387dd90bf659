"""The page of a query: one HTML document without anything from elsewhere, which draws the records of its micro-batches.

    records ─▶ view.py: what is drawn, as JSON ─▶ document.py: HTML, style, scripts ─┬─▶ a notebook's output, in a frame
               runs.py: record files, followed ─▶ server.py: the same over HTTP ─────┤
                                                                                     └─▶ a file, of a finished run

The browser's side: ``dom.js`` makes elements and texts, ``graph.js`` the topology, ``charts.js`` micro-batches over
time, ``bars.js`` shares and lengths, ``tables.js`` the table behind each picture, ``headline.js`` what to change,
``component.js`` the chosen one; ``page.js`` puts them together. What a record names is data: it becomes text nodes
alone, and the policy of the document runs no script but these.
"""

__all__: list[str] = []
