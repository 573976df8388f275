/// The link from models to their context: the context itself as long as it exists, and afterwards enough to read
/// related models.
///
/// Must be used where the context is used.
final class ModelContextLink {
    let container: ModelContainer
    /// Set by the context that the home is created for.
    weak var context: ModelContext?
    var registry = ModelRegistry()

    init(_ container: ModelContainer) { self.container = container }

    /// The context or, if it is gone, a read-only stand-in.
    var reader: ModelContext { context ?? ModelContext(self, isStandIn: true) }
}
