/// An empty message that is sent only to test the right to write.
///
/// A broker that lets the right be tested in another way does not store it. Where a broker stores it, nodes ignore it.
extension OutgoingMessage {
    package static let probe = OutgoingMessage(
        key: Array("probe".utf8), headers: [MessageHeader(MessageHeader.probe, "1")], payload: [], tag: 0)
}

extension MessageHeader {
    /// The name of the only header of ``OutgoingMessage/probe``. No other message has this header. Part of the wire
    /// format.
    package static let probe = "martlet-probe"
}

extension IncomingMessage {
    /// True for ``OutgoingMessage/probe``, which must not go to the dead-letter queue (quarantine).
    package var isProbe: Bool { headers.count == 1 && headers[0].name == MessageHeader.probe && payload.isEmpty }
}
