"""What users' compiled components are compiled against: the bases of their Cython classes, and the check of both."""
