import Glibc

extension UnsafeRawBufferPointer {
    /// Returns whether both buffers hold the same bytes. Compares them with one `memcmp`, where arrays compare byte by
    /// byte.
    package func areEqual(to other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count, let start = baseAddress, let otherStart = other.baseAddress else {
            return count == other.count
        }
        return memcmp(start, otherStart, count) == 0
    }
}

extension String {
    /// Returns whether both strings are certainly encoded in the same bytes. `==` also accepts canonically equivalent
    /// strings with different bytes. Returns false if the storage of either string is not contiguous.
    package func hasBytes(of other: String) -> Bool {
        other.utf8.withContiguousStorageIfAvailable { hasBytes(UnsafeRawBufferPointer($0)) } ?? false
    }

    /// Returns whether the string is certainly encoded in these bytes. Returns false if its storage is not contiguous.
    package func hasBytes(_ bytes: UnsafeRawBufferPointer) -> Bool {
        utf8.withContiguousStorageIfAvailable { UnsafeRawBufferPointer($0).areEqual(to: bytes) } ?? false
    }
}
