/// The names of the topics that accompany the topic for transactions.
package enum SideTopic {
    /// Returns the name of the topic for snapshots.
    package static func snapshots(of topic: String) -> String { "\(topic).snapshot" }

    /// Returns the name of the topic for anti-entropy checks.
    package static func checks(of topic: String) -> String { "\(topic).check" }
}
