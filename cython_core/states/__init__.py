"""States of keys: what each tuple of a bolt with states needs of them."""
