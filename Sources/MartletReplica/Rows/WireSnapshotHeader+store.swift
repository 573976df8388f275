import Foundation
import MartletCore
package import MartletWire

extension WireSnapshotHeader {
    /// Makes the header that describes a node's state, for a snapshot or a check.
    ///
    /// - Parameter names: the encoder of the rows. Nil if there are none.
    package init(_ context: ReplicaContext, topic: String, origins: [WireSnapshotOrigin], names: SnapshotRowEncoder?) {
        self.init()
        maker = Data(context.node.bytes)
        makerName = context.nodeName
        madeMs = context.now()
        hlc = context.clock.last.rawValue
        self.topic = topic
        self.origins = origins
        collected = context.collected.time.rawValue
        if let names {
            entities = names.wireEntities
            nodes = names.wireNodes
        }
    }
}
