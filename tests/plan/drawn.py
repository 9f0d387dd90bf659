"""What an SVG of a topology shows, and where."""

from itertools import combinations

SVG = "{http://www.w3.org/2000/svg}"


def areas_of(root):
    """(left, top, right, bottom) of every box, and of every label of an arrow as wide as its text."""
    boxes, labels = [], []
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("class") != "page":
            x, y = float(rect.get("x")), float(rect.get("y"))
            boxes.append((x, y, x + float(rect.get("width")), y + float(rect.get("height"))))
    for text in root.iter(f"{SVG}text"):
        if text.get("class") == "label":
            x, y = float(text.get("x")), float(text.get("y"))
            labels.append((x, y - 9, x + 7.2 * len(text.text), y + 2))
    return boxes, labels


def check_apart(areas):
    for one, two in combinations(areas, 2):
        apart = one[2] <= two[0] or two[2] <= one[0] or one[3] <= two[1] or two[3] <= one[1]
        assert apart, (one, two)
