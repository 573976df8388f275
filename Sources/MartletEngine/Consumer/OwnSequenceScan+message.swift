import MartletCore
import MartletMerge
import MartletWire

extension OwnSequenceScan {
    mutating func note(_ decoded: DecodedMessage, node: NodeID) {
        guard case .success(let envelope) = decoded.envelope, envelope.origin == node, decoded.isIntact else { return }
        note(envelope.sequence, chunk: envelope.chunk)
    }
}
