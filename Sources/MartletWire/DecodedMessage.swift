import Dispatch
import Foundation
package import MartletBus
package import MartletCore
import Synchronization

/// A message, with everything that can be decoded from it without the store.
///
/// A class, because it is passed through several stages, and copying its fields would take longer than most of the work
/// done with it.
package final class DecodedMessage: Sendable {
    /// What is needed to verify and decrypt messages.
    package struct Reader: Sendable {
        package let messageGuard: MessageGuard
        package let topic: String
        package let node: NodeID

        package init(messageGuard: MessageGuard, topic: String, node: NodeID) {
            self.messageGuard = messageGuard
            self.topic = topic
            self.node = node
        }
    }

    package static func all(_ messages: [IncomingMessage], _ reader: Reader, isAhead: Bool = false) -> [DecodedMessage]
    {
        let parts = min(processorCount - (isAhead ? 1 : 0), messages.count / 64)
        guard parts > 1 else { return some(messages[...], reader) }
        let size = (messages.count + parts - 1) / parts
        let results = Mutex([[DecodedMessage]](repeating: [], count: parts))
        DispatchQueue.concurrentPerform(iterations: parts) { part in
            let range = min(messages.count, part * size)..<min(messages.count, (part + 1) * size)
            let decoded = some(messages[range], reader)
            results.withLock { $0[part] = decoded }
        }
        return results.withLock { Array($0.joined()) }
    }

    // Read once, since this reads a file.
    private static let processorCount = ProcessInfo.processInfo.activeProcessorCount

    private static func some(_ messages: ArraySlice<IncomingMessage>, _ reader: Reader) -> [DecodedMessage] {
        var parser = OriginParser()
        var names = KnownNames()
        return messages.map { DecodedMessage($0, &parser, &names, reader) }
    }

    /// The message after verification and decryption; the same as `source` if it was refused.
    package let message: IncomingMessage
    /// The message as received.
    package let source: IncomingMessage
    /// The reason why the message was refused. Nil if it was accepted.
    package let refusal: WireError?
    package let envelope: Result<WireEnvelope, WireError>
    /// The decoded transaction. Nil for a chunk, and if the message can't be used: its headers are invalid, it was
    /// refused, or its checksum does not match.
    package let transaction: Result<DecodedTransaction, WireError>?
    package let isIntact: Bool

    /// True for the last chunk of a transaction, which usually arrives last.
    package var mayComplete: Bool {
        guard case .success(let envelope) = envelope, let chunk = envelope.chunk else { return false }
        return chunk.index == chunk.count - 1
    }

    package init(
        _ source: IncomingMessage, _ parser: inout OriginParser, _ names: inout KnownNames, _ reader: Reader
    ) {
        self.source = source
        let opened = Result { () throws(WireError) in
            try reader.messageGuard.open(source, topic: reader.topic, node: reader.node)
        }
        switch opened {
        case .success(let opened): (message, refusal, isIntact) = (opened, nil, opened.isIntact)
        case .failure(let error): (message, refusal, isIntact) = (source, error, false)
        }
        let message = message
        envelope = Result { () throws(WireError) in try WireEnvelope(message, &parser) }
        guard case .success(let envelope) = envelope, envelope.chunk == nil, isIntact else {
            transaction = nil
            return
        }
        transaction = Result { () throws(WireError) in try DecodedTransaction(payload: message.payload, &names) }
    }
}
