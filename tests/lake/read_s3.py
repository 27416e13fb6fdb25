"""Reads a release in an object store with pyarrow's own client, independently of kanon and its libraries.

    python read_s3.py s3://lake/visits_safe [--compare FOLDER]
    python read_s3.py az://lake/visits_safe [--compare FOLDER]

Prints a line for every table: its folder, files, rows, columns and a hash of its rows, which does not depend on their order
or on the files they are in. A table is the Parquet objects of one folder and of its partition folders (`year=2024/`), whose
names are columns, as pyarrow reads them; a release has one, or two under `anatomy`. Objects below names that begin with `_` or
`.` are left out. With --compare, exit code 1 unless a local folder has the same tables.

The store is that of AWS_ENDPOINT, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or of AZURE_STORAGE_ENDPOINT,
AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY.
"""

import argparse
import hashlib
import os
import sys
from collections import defaultdict
from itertools import takewhile
from urllib.parse import urlsplit

import pyarrow
from pyarrow.dataset import dataset
from pyarrow.fs import AzureFileSystem, FileSelector, FileType, LocalFileSystem, S3FileSystem


def store_of(scheme):
    """Returns the store that the environment describes."""
    variables = os.environ
    if scheme == "s3":
        endpoint = urlsplit(variables["AWS_ENDPOINT"])
        return S3FileSystem(
            endpoint_override=endpoint.netloc,
            scheme=endpoint.scheme,
            region=variables["AWS_REGION"],
            access_key=variables["AWS_ACCESS_KEY_ID"],
            secret_key=variables["AWS_SECRET_ACCESS_KEY"],
        )
    endpoint = urlsplit(variables["AZURE_STORAGE_ENDPOINT"])
    return AzureFileSystem(
        variables["AZURE_STORAGE_ACCOUNT_NAME"],
        account_key=variables["AZURE_STORAGE_ACCOUNT_KEY"],
        blob_storage_authority=endpoint.netloc,
        blob_storage_scheme=endpoint.scheme,
        dfs_storage_authority=endpoint.netloc,
        dfs_storage_scheme=endpoint.scheme,
    )


def texts_of(column):
    """Returns the values of a column as texts. Python's own times have no nanoseconds, so times become numbers."""
    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pyarrow.types.is_timestamp(kind) or pyarrow.types.is_time64(kind) or pyarrow.types.is_duration(kind):
        column = column.view(pyarrow.int64())
    return [repr(value) for value in column.to_pylist()]


def table_of(store, folder, paths):
    """Returns the number of rows of these files below a folder, the columns, and the sum of the rows' hashes."""
    table = dataset(paths, filesystem=store, format="parquet", partitioning="hive", partition_base_dir=folder)
    first = None
    for fragment in table.get_fragments():
        found = ", ".join(f"{field.name} {field.type}" for field in fragment.physical_schema)
        if found != (first or found):
            sys.exit(f"FAIL  {fragment.path} has other columns than the files before it: {found}")
        first = found
    rows, total = 0, 0
    # By their names, because partition folders give their columns another place.
    for batch in table.to_batches(columns=sorted(table.schema.names)):
        rows += batch.num_rows
        for row in zip(*map(texts_of, batch.columns), strict=True):
            total += int.from_bytes(hashlib.sha256("\0".join(row).encode()).digest())
    columns = ", ".join(f"{field.name} {field.type}" for field in table.schema)
    return rows, columns, f"{total % 2**256:064x}"


def tables_of(store, folder):
    """Returns the tables below a folder by the names of their folders, and the numbers of their files."""
    files = defaultdict(list)
    for entry in store.get_file_info(FileSelector(folder, allow_not_found=True, recursive=True)):
        parts = entry.path.removeprefix(folder).strip("/").split("/")
        if entry.type == FileType.File and parts[-1].endswith(".parquet") and not any(p[0] in "_." for p in parts):
            above = takewhile(lambda part: "=" not in part, parts[:-1])
            files["/".join(above) or "."].append(entry.path)
    if not files:
        sys.exit(f"FAIL  {folder} has no Parquet files")
    counts = {name: len(paths) for name, paths in files.items()}
    roots = {name: f"{folder}/{name}".removesuffix("/.") for name in files}
    return {name: table_of(store, roots[name], sorted(paths)) for name, paths in sorted(files.items())}, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--compare", metavar="FOLDER")
    arguments = parser.parse_args()

    address = urlsplit(arguments.address)
    if address.scheme not in ("s3", "az"):
        parser.error("the address begins with s3:// or az://")
    tables, counts = tables_of(store_of(address.scheme), (address.netloc + address.path).rstrip("/"))
    for name, (rows, columns, total) in tables.items():
        print(f"{name}: files={counts[name]} rows={rows} sum={total} columns=({columns})")
    if arguments.compare is not None:
        others, _ = tables_of(LocalFileSystem(), os.path.abspath(arguments.compare))
        if different := sorted(name for name in tables.keys() | others.keys() if tables.get(name) != others.get(name)):
            sys.exit(f"FAIL  the store and {arguments.compare} differ in: {', '.join(different)}")
        print(f"same rows as in {arguments.compare}")


if __name__ == "__main__":
    main()
