"""Where a spout with notes resumes: after the last committed micro-batch."""

import json
import logging

from pystorm_source.errors import DataLossError
from pystorm_source.journal.log import GO_ON, SAME_FOLDER, Journal
from pystorm_source.journal.manifest import HEAD

logger = logging.getLogger("pystorm.journal")


def notes_at(journal: Journal, offset: int, fail_on_data_loss: bool) -> str | None:
    """The notes after all tuples below ``offset``; None at the beginning of the journal.

    Raises DataLossError if they are lost. Without ``fail_on_data_loss``, logs that, and the spout starts over.
    """
    if offset == 0:
        return None
    try:
        _, notes = _last(journal, offset)
        if notes is None:
            raise DataLossError(
                f"the journal does not say where the spout was at offset {offset}: its head is lost, or it was written "
                f"for a spout of another class. {SAME_FOLDER}; bring the files back from a copy, "
                f"{GO_ON.replace('without the lost tuples', 'from the beginning of its source')}. "
                f"Given: {journal.where(HEAD)!r}",
                code="PYSTORM_DATA_LOST",
            )
    except DataLossError as lost:
        if fail_on_data_loss:
            raise
        logger.warning("%s", lost)
        return None
    return notes


def is_over(journal: Journal, offset: int) -> bool:
    """Whether the source had nothing more when the micro-batch that ends at ``offset`` was committed."""
    end, notes = _last(journal, offset)
    return end == offset and notes is not None and bool(json.loads(notes).get("over"))


def _last(journal: Journal, offset: int) -> tuple[int | None, str | None]:
    """The end of the last committed batch that ends at or before ``offset``, and its notes."""
    last = journal.last_before(offset)
    if last is not None:
        return last.batch.end, last.notes
    # Order: manifests first. The driver may trim in between, and it writes the head before it deletes.
    head = journal.head()
    return (None, None) if head is None else (head.trimmed, head.notes)
