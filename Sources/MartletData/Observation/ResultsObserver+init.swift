// SwiftData's initializers. Each throws the errors of the first fetch, and `StoreError` if the file can't be watched.
// With a container, the observer creates its own context. `isolation` is accepted without effect: the observer must be
// used where it was created.

extension ResultsObserver where SectionTitle == Never {
    /// Observes the results of a descriptor, in a context.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor<Element>(), modelContext: ModelContext,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, nil, modelContext)
    }

    /// Observes the results of a descriptor, in a context of its own.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor<Element>(), modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, nil, ModelContext(modelContainer))
    }

    /// Observes the models that match a predicate, in a context.
    public convenience init(
        filterBy: Predicate<Element>? = nil, sortBy: [SortDescriptor<Element>]? = nil, modelContext: ModelContext,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(FetchDescriptor(predicate: filterBy, sortBy: sortBy ?? []), nil, modelContext)
    }

    /// Observes the models that match a predicate, in a context of its own.
    public convenience init(
        filterBy: Predicate<Element>? = nil, sortBy: [SortDescriptor<Element>]? = nil, modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(FetchDescriptor(predicate: filterBy, sortBy: sortBy ?? []), nil, ModelContext(modelContainer))
    }
}

extension ResultsObserver where SectionTitle == String {
    /// Observes the results of a descriptor, grouped by a property, in a context.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor<Element>(), sectionBy: KeyPath<Element, String>,
        modelContext: ModelContext, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, ResultsGrouping(sectionBy), modelContext)
    }

    /// Observes the results of a descriptor, grouped by a property, in a context.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor<Element>(), sectionBy: KeyPath<Element, String?>,
        modelContext: ModelContext, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, ResultsGrouping(sectionBy), modelContext)
    }

    /// Observes the results of a descriptor, grouped by a property, in a context of its own.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor<Element>(), sectionBy: KeyPath<Element, String>,
        modelContainer: ModelContainer, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, ResultsGrouping(sectionBy), ModelContext(modelContainer))
    }

    /// Observes the results of a descriptor, grouped by a property, in a context of its own.
    public convenience init(
        fetchDescriptor: FetchDescriptor<Element> = FetchDescriptor<Element>(), sectionBy: KeyPath<Element, String?>,
        modelContainer: ModelContainer, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(fetchDescriptor, ResultsGrouping(sectionBy), ModelContext(modelContainer))
    }

    /// Observes the models that match a predicate, grouped by a property, in a context.
    public convenience init(
        filterBy: Predicate<Element>? = nil, sortBy: [SortDescriptor<Element>]? = nil,
        sectionBy: KeyPath<Element, String>, modelContext: ModelContext, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            FetchDescriptor(predicate: filterBy, sortBy: sortBy ?? []), ResultsGrouping(sectionBy), modelContext)
    }

    /// Observes the models that match a predicate, grouped by a property, in a context.
    public convenience init(
        filterBy: Predicate<Element>? = nil, sortBy: [SortDescriptor<Element>]? = nil,
        sectionBy: KeyPath<Element, String?>, modelContext: ModelContext, isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            FetchDescriptor(predicate: filterBy, sortBy: sortBy ?? []), ResultsGrouping(sectionBy), modelContext)
    }

    /// Observes the models that match a predicate, grouped by a property, in a context of its own.
    public convenience init(
        filterBy: Predicate<Element>? = nil, sortBy: [SortDescriptor<Element>]? = nil,
        sectionBy: KeyPath<Element, String>, modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            FetchDescriptor(predicate: filterBy, sortBy: sortBy ?? []), ResultsGrouping(sectionBy),
            ModelContext(modelContainer))
    }

    /// Observes the models that match a predicate, grouped by a property, in a context of its own.
    public convenience init(
        filterBy: Predicate<Element>? = nil, sortBy: [SortDescriptor<Element>]? = nil,
        sectionBy: KeyPath<Element, String?>, modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(
            FetchDescriptor(predicate: filterBy, sortBy: sortBy ?? []), ResultsGrouping(sectionBy),
            ModelContext(modelContainer))
    }
}
