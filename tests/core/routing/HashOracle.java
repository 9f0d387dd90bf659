import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * What Storm hashes: each line of standard input holds the selected values of a tuple, between tabs, as json:TEXT,
 * bytes:HEX or decimal:TEXT; each line of output is Arrays.deepHashCode of them. JSON gives Long, BigInteger, Double,
 * String, Boolean, null, List and Map.
 */
public class HashOracle {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        json.enable(JsonParser.Feature.ALLOW_NON_NUMERIC_NUMBERS);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "US-ASCII"));
        StringBuilder answer = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", -1);
            Object[] values = new Object[parts.length];
            for (int i = 0; i < parts.length; i++) {
                String text = parts[i].substring(parts[i].indexOf(':') + 1);
                if (parts[i].startsWith("json:")) {
                    values[i] = valueOf((JsonNode) json.readTree(text));
                } else if (parts[i].startsWith("decimal:")) {
                    values[i] = new BigDecimal(text);
                } else {
                    byte[] bytes = new byte[text.length() / 2];
                    for (int at = 0; at < bytes.length; at++) {
                        bytes[at] = (byte) Integer.parseInt(text.substring(2 * at, 2 * at + 2), 16);
                    }
                    values[i] = bytes;
                }
            }
            answer.append(Arrays.deepHashCode(values)).append('\n');
        }
        System.out.print(answer);
    }

    private static Object valueOf(JsonNode node) {
        if (node.isNull()) return null;
        if (node.isTextual()) return node.textValue();
        if (node.isBoolean()) return Boolean.valueOf(node.booleanValue());
        if (node.isIntegralNumber() && node.canConvertToLong()) return Long.valueOf(node.longValue());
        if (node.isIntegralNumber()) return node.bigIntegerValue();
        if (node.isNumber()) return Double.valueOf(node.doubleValue());
        if (node.isArray()) {
            List list = new ArrayList();
            for (int i = 0; i < node.size(); i++) list.add(valueOf((JsonNode) node.get(i)));
            return list;
        }
        Map map = new HashMap();
        Iterator names = node.fieldNames();
        while (names.hasNext()) {
            String name = (String) names.next();
            map.put(name, valueOf((JsonNode) node.get(name)));
        }
        return map;
    }
}
