import MartletData
import Testing

@Model
private final class Ticket {
    var seat: Int
    init(seat: Int) { self.seat = seat }
}

/// What programs hand from one actor to another. The compiler checks it.
struct SendableTests {
    private struct Question: Sendable {
        let descriptor: FetchDescriptor<Ticket>
        let container: ModelContainer
    }

    @Test func fetchDescriptorsPassFromActorToActor() async throws {
        let container = try ModelContainer(
            for: Ticket.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        let context = ModelContext(container)
        for seat in 1...3 { context.insert(Ticket(seat: seat)) }
        try context.save()
        let question = Question(
            descriptor: FetchDescriptor(predicate: #Predicate { $0.seat > 1 }, sortBy: [SortDescriptor(\.seat)]),
            container: container)
        let seats = try await Task.detached {
            try ModelContext(question.container).fetch(question.descriptor).map(\.seat)
        }.value
        #expect(seats == [2, 3])
    }
}
