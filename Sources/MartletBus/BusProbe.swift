/// A message that says nothing: it is sent to try whether it may be.
///
/// A broker that can be asked that in another way does not store it. Where one does, nodes pass it over.
extension OutgoingMessage {
    package static let probe = OutgoingMessage(
        key: Array("probe".utf8), headers: [MessageHeader(MessageHeader.probe, "1")], payload: [], tag: 0)
}

extension MessageHeader {
    /// The name of the only header of ``OutgoingMessage/probe``. No other message has it. Part of the wire format.
    package static let probe = "martlet-probe"
}

extension IncomingMessage {
    /// True for ``OutgoingMessage/probe``, which has nothing to quarantine.
    package var isProbe: Bool { headers.count == 1 && headers[0].name == MessageHeader.probe && payload.isEmpty }
}
