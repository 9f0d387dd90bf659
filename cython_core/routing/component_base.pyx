"""What components inherit: of bolts, and of spouts."""

include "bolt_base.pxi"
include "spout_base.pxi"
