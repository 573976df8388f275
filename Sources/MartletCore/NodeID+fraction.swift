extension NodeID {
    /// Between 0 and 1, for each node another one.
    package var fraction: Double {
        // A hash of the bytes, because IDs may have been assigned in order.
        Double(FNV1a(bytes).value >> 11) / Double(1 << 53 as UInt64)
    }
}
