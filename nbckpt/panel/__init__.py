"""The panel of a run: what a person sees of it beside the cells.

`view` holds what is shown, `looking` reads it from the records, `html` and `text` give it
a form; `live` shows it and keeps it true while cells run; `buttons` ask while a person is
needed.
"""
