"""The bytes of Parquet pages, for the search for hidden texts in them."""

import pyarrow as pa
import pyarrow.parquet as pq


class Header:
    """A reader of Thrift's compact format, in which the header of a page is written."""

    def __init__(self, data, at):
        self.data, self.at = data, at

    def unsigned(self):
        """Reads an integer of seven bits a byte."""
        number, shift, byte = 0, 0, 128
        while byte & 128:
            byte = self.data[self.at]
            number, shift, self.at = number | (byte & 127) << shift, shift + 7, self.at + 1
        return number

    def signed(self):
        """Reads an integer whose last bit is its sign."""
        number = self.unsigned()
        return number >> 1 ^ -(number & 1)

    def struct(self):
        """Reads a struct; returns its integers, booleans and structs by their field numbers."""
        fields, field = {}, 0
        while head := self.data[self.at]:
            self.at += 1
            field = field + (head >> 4) if head >> 4 else self.signed()
            kind = head & 15
            if kind in (1, 2):  # True and false.
                fields[field] = kind == 1
            elif kind in (4, 5, 6):  # Integers of 16, 32 and 64 bits.
                fields[field] = self.signed()
            elif kind == 8:  # Bytes; a page header has some in its statistics.
                length = self.unsigned()
                self.at += length
            elif kind == 12:
                fields[field] = self.struct()
            else:
                raise ValueError(f"a page header with a field of kind {kind}")
        self.at += 1
        return fields


def pages(path):
    """Yields the decompressed content of each page of a Parquet file."""
    data, metadata = path.read_bytes(), pq.read_metadata(path)
    for group in range(metadata.num_row_groups):
        for chunk in map(metadata.row_group(group).column, range(metadata.num_columns)):
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            end = start + chunk.total_compressed_size
            while start < end:
                reader = Header(data, start)
                header = reader.struct()
                start, second = reader.at + header[3], header.get(8, {})  # Field 8: a data page of version 2.
                levels = second.get(5, 0) + second.get(6, 0)  # Their bytes come first and are never compressed.
                packed = data[reader.at + levels : start]
                if packed and chunk.compression != "UNCOMPRESSED" and second.get(7, True):
                    packed = pa.Codec(chunk.compression.lower()).decompress(packed, header[2] - levels).to_pybytes()
                yield packed
