"""Read and write data files: svmlight / LETOR, Parquet, CSV, npz and TREC runs."""

from rankhinge._public import publish
from rankhinge.datasets.data import LetorData, Texts
from rankhinge.datasets.errors import DataError
from rankhinge.datasets.letor import load_letor, load_letor_folds
from rankhinge.datasets.loading import load
from rankhinge.datasets.npz import load_npz, save_npz
from rankhinge.datasets.runs import Run, dump_run, load_run
from rankhinge.datasets.sources import written
from rankhinge.datasets.spool import open_spool, spool
from rankhinge.datasets.tables import load_table
from rankhinge.datasets.writing import dump_letor

__all__ = [
    "DataError",
    "LetorData",
    "Run",
    "Texts",
    "dump_letor",
    "dump_run",
    "load",
    "load_letor",
    "load_letor_folds",
    "load_npz",
    "load_run",
    "load_table",
    "open_spool",
    "save_npz",
    "spool",
    "written",
]

publish(__name__)
