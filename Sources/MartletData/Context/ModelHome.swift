/// What models keep of their context: the context as long as somebody holds it, and afterwards enough to read what they
/// are related to.
///
/// Used where the context is used.
final class ModelHome {
    let container: ModelContainer
    /// Set by the context that the home is made for.
    weak var context: ModelContext?
    var registry = ModelRegistry()

    init(_ container: ModelContainer) { self.container = container }

    /// The context, or one that only reads, in place of one that is gone.
    var reader: ModelContext { context ?? ModelContext(self, isStandIn: true) }
}
