import Glibc

extension UnsafeRawBufferPointer {
    /// True where both have the same bytes. At once: an array compares them one by one.
    package func areEqual(to other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count, let start = baseAddress, let otherStart = other.baseAddress else {
            return count == other.count
        }
        return memcmp(start, otherStart, count) == 0
    }
}

extension String {
    /// True where both are surely written in the same bytes: two ways to write a letter are one to `==`.
    package func hasBytes(of other: String) -> Bool {
        utf8.withContiguousStorageIfAvailable { own in
            other.utf8.withContiguousStorageIfAvailable {
                UnsafeRawBufferPointer(own).areEqual(to: UnsafeRawBufferPointer($0))
            } ?? false
        } ?? false
    }
}
