extension NodeID {
    /// Between 0 and 1, for each node another one.
    package var fraction: Double {
        // FNV-1a over the bytes, because IDs may have been assigned in order.
        let hash = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return Double(hash >> 11) / Double(1 << 53 as UInt64)
    }
}
