/// Limits how long the broker may hold a fetch.
///
/// librdkafka's mock cluster holds a fetch that finds nothing for the whole wait time of the request, even if a message
/// arrives meanwhile. That delays the message.
package enum FetchWait {
    /// The maximum wait time, in milliseconds. A fetch that finds nothing is repeated after this time.
    package static let limit: Int32 = 20

    private static let apiKey: Int16 = 1
    /// The maximum size of a fetch request, in bytes. A fetch lists partitions; a larger request is not meant for an
    /// embedded broker.
    private static let sizeMax: Int32 = 1 << 20

    /// - Parameters:
    ///   - head: the size, API key, version and correlation ID of a request.
    ///   - size: the number of bytes after the size field.
    /// - Returns: for a fetch, its version and the number of bytes that follow. Nil for a request to be passed on
    ///   unchanged.
    package static func header(of head: [UInt8], size: Int32) -> (version: Int16, count: Int)? {
        guard head.count == 12, KafkaPipe.integer(head, 4) == apiKey, size <= sizeMax else { return nil }
        return (KafkaPipe.integer(head, 6), Int(size) - 8)
    }

    /// - Parameters:
    ///   - request: everything after the correlation ID: the client ID and the fetch.
    ///   - version: versions from 12 on have tags after the client ID, and versions from 15 on have no replica ID
    ///     (Kafka protocol guide, "Fetch").
    package static func limit(in request: inout [UInt8], version: Int16) {
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
