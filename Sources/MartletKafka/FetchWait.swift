/// Limits how long a fetch may be held.
///
/// librdkafka's mock cluster holds a fetch that finds nothing for as long as it says, also when a message comes
/// meanwhile: that long a message is on its way.
enum FetchWait {
    /// The most that is left of it, in milliseconds. A fetch that finds nothing comes again so soon.
    static let limit: Int32 = 20

    private static let apiKey: Int16 = 1
    /// A fetch names partitions; more than this is none for an embedded broker.
    private static let sizeMax: Int32 = 1 << 20

    /// - Parameters:
    ///   - head: the size, kind, version and correlation number of a request.
    ///   - size: of what comes after the size.
    /// - Returns: of a fetch, its version, and how many bytes follow. Nil for what is passed on as it is.
    static func header(of head: [UInt8], size: Int32) -> (version: Int16, count: Int)? {
        guard head.count == 12, KafkaPipe.integer(head, 4) == apiKey, size <= sizeMax else { return nil }
        return (KafkaPipe.integer(head, 6), Int(size) - 8)
    }

    /// - Parameters:
    ///   - request: all that comes after the correlation number: the client's name, and the fetch.
    ///   - version: 12 and later have tags after the name, 15 and later no number of a replica (Kafka protocol guide,
    ///     "Fetch").
    static func limit(in request: inout [UInt8], version: Int16) {
        guard request.count >= 2 else { return }
        var index = 2 + Int(max(0, KafkaPipe.integer(request, 0) as Int16))
        if version >= 12 {
            // Clients send no tags here.
            guard request.count > index, request[index] == 0 else { return }
            index += 1
        }
        if version < 15 { index += 4 }
        guard index + 4 <= request.count else { return }
        guard KafkaPipe.integer(request, index) > limit else { return }
        request.replaceSubrange(index..<index + 4, with: [0, 0, UInt8(limit >> 8), UInt8(limit & 0xff)])
    }
}
