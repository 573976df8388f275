/// The names of the topics beside the one that transactions go to.
package enum SideTopic {
    /// The topic of snapshots.
    package static func snapshots(of topic: String) -> String { "\(topic).snapshot" }

    /// The topic of anti-entropy checks.
    package static func checks(of topic: String) -> String { "\(topic).check" }
}
