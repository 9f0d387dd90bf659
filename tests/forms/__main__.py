"""The campaign of tests/acking, over cases of this room: ``python -m tests.forms --first 0 --rounds 20000``."""

import sys

from tests.acking import __main__ as campaign
from tests.forms.check import check
from tests.forms.drawn import case_of

if __name__ == "__main__":
    campaign.CHECKS = {"forms": campaign.Check(case_of, check)}
    sys.exit(campaign.main())
