/// A message that says nothing: it is sent to try whether it may be.
///
/// A broker that can be asked that in another way does not store it. Where one does, nodes pass it over.
extension OutgoingMessage {
    package static let probe = OutgoingMessage(
        key: Array("probe".utf8), headers: [MessageHeader(WireHeader.probe, "1")], payload: [], tag: 0)
}

extension IncomingMessage {
    /// True for ``OutgoingMessage/probe``, which has nothing to quarantine.
    var isProbe: Bool { headers.count == 1 && headers[0].name == WireHeader.probe && payload.isEmpty }
}
